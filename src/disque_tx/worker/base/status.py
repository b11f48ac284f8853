"""The status of a worker, reported in the name of its connections, for ``disque workers``.

``disque-worker/<name>/<slots>/<held>/<queues>``. A name has no spaces and no control characters
(client protocol, CLIENT SETNAME) and 256 bytes at most, so the parts are quoted as in a URL, and
the name of the worker and the queues are cut where they get too long.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final
from urllib.parse import quote, unquote

import attrs
from twisted.internet.task import LoopingCall

from disque_tx.worker.base.context import WorkerClient

_PREFIX: Final = "disque-worker"
_PARTS: Final = 5
#: The longest name that a node accepts.
_CHARACTERS_MAX: Final = 256
_WORKER_CHARACTERS_MAX: Final = 100
#: How long a change may take to be reported.
REPORT_INTERVAL_S: Final = 2.0


@attrs.frozen
class WorkerStatus:
    """``worker``: its name, by default host and process. ``slots``: how many jobs it does at a
    time. ``held``: how many it held then: delivered, and neither acknowledged nor given back.
    ``queues``: that it fetches jobs from; a ``None`` at the end if there are more. A long name of a
    worker is cut."""

    worker: str
    slots: int
    held: int
    queues: tuple[str | None, ...]

    def encoded(self) -> str:
        """The name of a connection with this status."""
        name = f"{_PREFIX}/{_cut(self.worker)}/{self.slots}/{self.held}/"
        queues = ""
        for queue in self.queues:
            more = "," + ("" if queue is None else _quoted(queue))
            if len(name) + len(queues) + len(more) > _CHARACTERS_MAX:
                queues += ","
                break
            queues += more
        return name + queues[1:]

    @classmethod
    def decoded(cls, name: str) -> WorkerStatus | None:
        """The status in the name of a connection; ``None`` if it is not a worker's."""
        parts = name.split("/")
        if len(parts) != _PARTS or parts[0] != _PREFIX:
            return None
        _, worker, slots, held, queues = parts
        if not (slots.isdecimal() and held.isdecimal()):
            return None
        names = tuple(_unquoted(queue) if queue else None for queue in queues.split(","))
        return cls(_unquoted(worker), int(slots[:9]), int(held[:9]), names)


def worker_of(name: str) -> str:
    """The worker whose connection has this name; the name itself if it is not that of a worker."""
    status = WorkerStatus.decoded(name)
    return name if status is None else status.worker


def _quoted(text: str) -> str:
    return quote(text, safe=":", errors="surrogateescape")


def _cut(text: str) -> str:
    """The longest quoted beginning of the text, in whole characters, that fits."""
    quoted = ""
    for character in text:
        more = _quoted(character)
        if len(quoted) + len(more) > _WORKER_CHARACTERS_MAX:
            break
        quoted += more
    return quoted


def _unquoted(text: str) -> str:
    return unquote(text, errors="surrogateescape")


class StatusReporter:
    """Keeps the names of a worker's connections up to date. ``held``: returns how many jobs it
    holds now."""

    def __init__(
        self,
        client: WorkerClient,
        clock: Any,
        worker: str,
        slots: int,
        queues: Sequence[str],
        held: Callable[[], int],
    ) -> None:
        self._client = client
        self._sign = WorkerStatus(worker, slots, 0, tuple(queues))
        self._held = held
        self._reported = ""
        self._timer = LoopingCall(self._report)
        self._timer.clock = clock

    def start(self) -> None:
        """Report the status now, and when it has changed."""
        if not self._timer.running:
            self._timer.start(REPORT_INTERVAL_S)

    def stop(self) -> None:
        """Stop reporting."""
        if self._timer.running:
            self._timer.stop()

    def _report(self) -> None:
        name = attrs.evolve(self._sign, held=self._held()).encoded()
        if name != self._reported:
            self._reported = name
            self._client.set_name(name)
