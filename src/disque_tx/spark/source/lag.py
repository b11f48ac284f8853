"""How far a stream is behind: what waits in its queues.

Nodes of disque-tx count this by themselves; originals only know the lengths of queues.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import attrs

from disque_tx.client.blocking.servers import PipelinedConnection
from disque_tx.client.errors import Refused
from disque_tx.client.requests import counting
from disque_tx.client.requests import encoding as requests
from disque_tx.client.requests.counting import QueueCounts
from disque_tx.client.requests.selection import Selection
from disque_tx.spark.source.fetching import Fetching

_PAGE_QUEUES: Final = 1000
#: In the progress of a query, which is kept in memory and in logs.
_QUEUES_SHOWN: Final = 10
_NAME_CHARACTERS_MAX: Final = 60


@attrs.define
class Waiting:
    """What waits in a queue, or in many. ``oldest_ms``: for how long its first job has."""

    queued: int = 0
    in_flight: int = 0
    oldest_ms: int = 0

    def add(self, other: Waiting) -> None:
        """Count what another node, or another queue, has."""
        self.queued += other.queued
        self.in_flight += other.in_flight
        self.oldest_ms = max(self.oldest_ms, other.oldest_ms)

    def as_json(self) -> dict[str, Any]:
        """As a progress shows it."""
        oldest_s = self.oldest_ms / 1000
        return {"queued": self.queued, "inFlight": self.in_flight, "oldestS": oldest_s}


def waiting(fetching: Fetching, selection: Selection) -> dict[str, Waiting]:
    """Queue → what waits in it at the nodes that can be reached.

    :raises CannotConnect: when no node can be reached.
    :raises Refused: when a node does not say.
    """
    queues: dict[str, Waiting] = {}
    answers = fetching.ask_each(lambda node: list(_at(node, selection)))
    for counts in answers.values():
        for name, found in counts:
            queues.setdefault(name, Waiting()).add(found)
    return queues


def total(queues: dict[str, Waiting]) -> Waiting:
    """What waits in all of them."""
    whole = Waiting()
    for found in queues.values():
        whole.add(found)
    return whole


def as_json(queues: dict[str, Waiting]) -> dict[str, Any]:
    """The lag for a progress: all queues together, and those with most jobs."""
    largest = sorted(queues.items(), key=lambda one: (-one[1].queued, one[0]))[:_QUEUES_SHOWN]
    shown = {name[:_NAME_CHARACTERS_MAX]: found.as_json() for name, found in largest}
    return {**total(queues).as_json(), "queues": shown}


def _at(node: PipelinedConnection, selection: Selection) -> Iterator[tuple[str, Waiting]]:
    try:
        for queue in selection.queues:
            yield _counted(node.call(counting.queue_counts(queue)).counts)
        for pattern in selection.match:
            is_first, cursor = True, None
            while is_first or cursor is not None:
                asked = counting.list_queues(pattern, "name", _PAGE_QUEUES, cursor)
                page = node.call(attrs.evolve(asked, wait_s=0.0))
                yield from map(_counted, page.queues)
                is_first, cursor = False, page.cursor
    except Refused as error:
        if selection.match or "unknown command" not in str(error):
            raise
        for queue in selection.queues:
            yield queue.decode(errors="replace"), Waiting(node.call(requests.queue_length(queue)))


def _counted(counts: QueueCounts) -> tuple[str, Waiting]:
    name = counts.name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    return name, Waiting(counts.queued, counts.in_flight, counts.oldest_ms)
