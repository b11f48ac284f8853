"""What a worker says about itself to nodes, for people who look at all workers: CLIENT ANNOUNCE.

The text is an object in JSON with the members of :func:`description`, of 4,096 bytes at most: lists
are cut, and ``cut`` says so. Nodes keep it with the connection and do not read it. The original
knows no such command: a worker is listed by the name of its connections alone there.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import attrs
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import LoopingCall
from twisted.logger import Logger
from twisted.python.failure import Failure

from disque_tx import __version__
from disque_tx.client import ClientError, Refused
from disque_tx.client.requests.announcements import announcement, short
from disque_tx.worker.base.context import HeldJob, WorkerClient

ANNOUNCE_INTERVAL_S: Final = 5.0
_NAMES_MAX: Final = 30
_JOBS_MAX: Final = 20
#: After a node has refused it, it is tried again after so many turns.
_PAUSE_TURNS: Final = 60
_log = Logger()


#: Names the release of the program whose tasks a worker runs.
RELEASE_VARIABLE: Final = "DISQUE_RELEASE"


def release() -> str:
    """The release that the environment names, or the version of this package."""
    return os.environ.get(RELEASE_VARIABLE) or __version__


@attrs.frozen
class WorkerIdentity:
    """What does not change while a worker runs. ``control``: it takes commands. ``version``: of the
    program."""

    id: str
    worker: str
    host: str
    pid: int
    slots: int
    queues: Sequence[str]
    tasks: Sequence[str]
    control: bool
    version: str = attrs.Factory(release)


def description(
    who: WorkerIdentity,
    state: str,
    held: int,
    running: Iterable[tuple[HeldJob, float]],
    done: int,
    failed: int,
) -> bytes:
    """The text. ``state``: ``taking``, ``idle`` (it takes no jobs) or ``stopping``. ``running``:
    jobs that it works on, and for how many seconds; those that take longest are told first.
    ``done`` and ``failed``: in the last hour."""
    longest = sorted(running, key=lambda row: -row[1])
    values: dict[str, Any] = {
        "id": who.id,
        "worker": short(who.worker),
        "host": short(who.host),
        "pid": who.pid,
        "version": short(who.version),
        "slots": who.slots,
        "control": who.control,
        "state": state,
        "held": held,
        "running": len(longest),
        "done": done,
        "failed": failed,
        "queues": [short(name) for name in who.queues[:_NAMES_MAX]],
        "tasks": [short(name) for name in who.tasks[:_NAMES_MAX]],
        "jobs": [_job(one, for_s) for one, for_s in longest[:_JOBS_MAX]],
        "cut": len(who.queues) > _NAMES_MAX or len(who.tasks) > _NAMES_MAX,
    }
    return announcement(values, ("tasks", "queues", "jobs"))


def _job(one: HeldJob, for_s: float) -> dict[str, Any]:
    context = one.context
    values: dict[str, Any] = {
        "id": context.id,
        "queue": short(context.queue),
        "task": short(one.task),
        "for_s": round(for_s, 1),
    }
    report = context.reported
    if report is not None:
        values |= {"progress": round(report.fraction, 3), "note": short(report.note)}
    return values


class Announcer:
    """Says it again and again. ``describe``: makes the text."""

    def __init__(self, client: WorkerClient, clock: Any, describe: Callable[[], bytes]) -> None:
        self._client = client
        self._describe = describe
        self._sent: Deferred[Any] | None = None
        self._refused = 0
        self._timer = LoopingCall(self.announce)
        self._timer.clock = clock

    def start(self) -> None:
        """Say it now, and every five seconds."""
        if not self._timer.running:
            self._timer.start(ANNOUNCE_INTERVAL_S)

    def stop(self) -> None:
        """The worker is about to end: it is not to be listed any more."""
        if self._timer.running:
            self._timer.stop()
        if self._sent is not None:
            self._sent.cancel()
        elif not self._refused:
            self._send(b"")

    def announce(self) -> None:
        """Say it now, unless a node does not want to know it."""
        if self._sent is not None:
            return
        if self._refused:
            self._refused -= 1
            return
        self._send(self._describe())

    def _send(self, text: bytes) -> None:
        self._sent = self._client.execute("CLIENT", "ANNOUNCE", text)
        self._sent.addErrback(self._failed).addBoth(self._ended)

    def _failed(self, failure: Failure) -> None:
        failure.trap(ClientError, CancelledError)
        if failure.check(Refused):
            self._refused = _PAUSE_TURNS
            _log.debug("The node does not list workers: {error}", error=failure.value)

    def _ended(self, _: object) -> None:
        self._sent = None
