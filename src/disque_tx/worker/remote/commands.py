"""Commands to one worker: it fetches them from a queue of its own, if it was started to do so.

A command is a job with RETRY 0 and a short TTL whose body is an object in JSON: ``command`` is one
of :data:`COMMANDS`, ``by`` is who sent it, for the log. Anything else is logged and left alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import deferLater
from twisted.logger import Logger

from disque_tx.client import ClientError
from disque_tx.client.requests.replies import json_object
from disque_tx.worker.base.context import DeliveredJob, WorkerClient

#: Take no more jobs; take jobs again; take no more, and end when those that are here are done.
STOP_TAKING: Final = "stop-taking"
TAKE: Final = "take"
STOP: Final = "stop"
COMMANDS: Final = (STOP_TAKING, TAKE, STOP)
#: How the name of the queue begins; the ID of the worker follows.
CONTROL_PREFIX: Final = "worker-control:"
#: All these queues: a worker whose pattern matches them leaves the commands to others alone.
CONTROL_QUEUES: Final = f"{CONTROL_PREFIX}*"
_BODY_BYTES_MAX: Final = 1_024
_BY_CHARACTERS_MAX: Final = 160
_PAUSE_S: Final = 2.0
_log = Logger()


def control_queue(worker_id: str) -> str:
    """The queue of the commands to this worker."""
    return CONTROL_PREFIX + worker_id


def read(body: bytes) -> tuple[str, str] | None:
    """The command and its sender; ``None`` for anything else."""
    if len(body) > _BODY_BYTES_MAX:
        return None
    values = json_object(body)
    if values is None:
        return None
    command, by = values.get("command"), values.get("by", "")
    if command not in COMMANDS or not isinstance(by, str):
        return None
    shown = "".join(one if one.isprintable() else "?" for one in by[:_BY_CHARACTERS_MAX])
    return command, shown


class CommandReader:
    """Fetches the commands to a worker. ``actions``: what is done for each."""

    def __init__(
        self,
        client: WorkerClient,
        clock: Any,
        worker_id: str,
        actions: Mapping[str, Callable[[], object]],
    ) -> None:
        self._client = client
        self._clock = clock
        self._queue = control_queue(worker_id)
        self._actions = actions
        self._running: Deferred[None] | None = None

    def start(self) -> None:
        """Fetch commands until :meth:`stop`."""
        if self._running is None:
            self._running = Deferred.fromCoroutine(self._run())
            self._running.addErrback(lambda failure: failure.trap(CancelledError))

    def stop(self) -> None:
        """Fetch no more."""
        running, self._running = self._running, None
        if running is not None:
            running.cancel()

    async def _run(self) -> None:
        while True:
            try:
                jobs: list[DeliveredJob] = await self._client.take(self._queue)
                for job in jobs:
                    self._obey(job.job.body)
                await self._client.ack_taken(jobs)
            except ClientError as error:
                _log.debug("No commands can be fetched: {error}", error=error)
                await deferLater(self._clock, _PAUSE_S)

    def _obey(self, body: bytes) -> None:
        found = read(body)
        if found is None:
            _log.warn("A command that is none was ignored: {body!r}", body=body[:100])
            return
        command, by = found
        _log.info("Command {command!r} by {by}", command=command, by=by or "an unknown client")
        self._actions[command]()
