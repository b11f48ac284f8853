"""What a worker says of itself to nodes: the name of its connections, for ``disque workers``.

``disque-worker/<name>/<slots>/<held>/<queues>``. A name has no spaces and no control characters
(client protocol, CLIENT SETNAME), so the parts are quoted as in a URL, and the queues are cut where
they get too long.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final
from urllib.parse import quote, unquote

import attrs
from twisted.internet.task import LoopingCall

from disque_tx.worker.ports import Client

_PREFIX: Final = "disque-worker"
_PARTS: Final = 5
_QUEUES_CHARACTERS_MAX: Final = 500
#: How long a change may go unsaid.
RENEW_S: Final = 2.0


@attrs.frozen
class Sign:
    """``worker``: its name, by default host and process. ``slots``: how many jobs it does at a
    time. ``held``: how many it had when it said so: taken, and neither acknowledged nor given back.
    ``queues``: that it takes jobs from; ``None`` behind the last where there are more."""

    worker: str
    slots: int
    held: int
    queues: tuple[str | None, ...]

    def encoded(self) -> str:
        """As the name of a connection."""
        queues = ""
        for queue in self.queues:
            more = "," + ("" if queue is None else _quoted(queue))
            if len(queues) + len(more) > _QUEUES_CHARACTERS_MAX:
                queues += ","
                break
            queues += more
        return f"{_PREFIX}/{_quoted(self.worker)}/{self.slots}/{self.held}/{queues[1:]}"

    @classmethod
    def decoded(cls, name: str) -> Sign | None:
        """What the name of a connection says; ``None`` if it is not a worker's."""
        parts = name.split("/")
        if len(parts) != _PARTS or parts[0] != _PREFIX:
            return None
        _, worker, slots, held, queues = parts
        if not (slots.isdecimal() and held.isdecimal()):
            return None
        names = tuple(_unquoted(queue) if queue else None for queue in queues.split(","))
        return cls(_unquoted(worker), int(slots[:9]), int(held[:9]), names)


def _quoted(text: str) -> str:
    return quote(text, safe=":", errors="surrogateescape")


def _unquoted(text: str) -> str:
    return unquote(text, errors="surrogateescape")


class Signboard:
    """Keeps the names of a worker's connections true. ``held``: how many jobs it has now."""

    def __init__(
        self,
        client: Client,
        clock: Any,
        worker: str,
        slots: int,
        queues: Sequence[str],
        held: Callable[[], int],
    ) -> None:
        self._client = client
        self._sign = Sign(worker, slots, 0, tuple(queues))
        self._held = held
        self._said = ""
        self._renewing = LoopingCall(self._renew)
        self._renewing.clock = clock

    def start(self) -> None:
        """Say it now, and when it has changed."""
        if not self._renewing.running:
            self._renewing.start(RENEW_S)

    def stop(self) -> None:
        """Say no more."""
        if self._renewing.running:
            self._renewing.stop()

    def _renew(self) -> None:
        name = attrs.evolve(self._sign, held=self._held()).encoded()
        if name != self._said:
            self._said = name
            self._client.set_name(name)
