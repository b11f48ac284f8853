"""Work on much data in slices, between which the node serves its clients."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

from twisted.internet.task import deferLater

from disque_tx.services.interfaces import IHost, QueueFigures

#: A slice takes a millisecond or two.
QUEUES_PER_SLICE: Final = 250
#: Seconds between two slices: long enough for a turn of the node.
PAUSE_S: Final = 0.001


async def pause(host: IHost) -> None:
    """Let the node serve its clients."""
    await deferLater(host.reactor, PAUSE_S, lambda: None)


async def all_queues(host: IHost) -> AsyncIterator[list[QueueFigures]]:
    """Every queue of the node, some at a time; one that is returned twice is left out the second
    time."""
    seen: set[bytes] = set()
    cursor = 0
    while True:
        cursor, some = host.view.queues(cursor, QUEUES_PER_SLICE)
        fresh = [queue for queue in some if queue.name not in seen]
        seen.update(queue.name for queue in fresh)
        yield fresh
        if cursor == 0:
            return
        await pause(host)
