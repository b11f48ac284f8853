"""Programs that process the work queue ``P`` until they are killed: ``python -m
tests.acceptance.workers ours|theirs|cleaner <port>``.

A program that completes an item pushes its ID to the list ``done:ours`` or ``done:theirs``.
"""

from __future__ import annotations

import sys
from typing import Any, NoReturn

LEASE_S = 2


def theirs(port: int) -> NoReturn:
    """Process items with the published package, as its documentation describes."""
    import redis
    from redis_work_queue import KeyPrefix, WorkQueue

    database = redis.Redis(port=port)
    queue = WorkQueue(KeyPrefix("P"))
    while True:
        item = queue.lease(database, LEASE_S, timeout=1)
        if item is not None and queue.complete(database, item):
            database.rpush("done:theirs", item.id())


async def ours(reactor: Any, port: int) -> None:
    """Process items with the class of this project."""
    from disque_tx.workqueue import Redis, WorkQueue

    redis = Redis.at(f"redis://127.0.0.1:{port}", reactor)
    queue = WorkQueue("P", redis)
    while True:
        item = await queue.lease(LEASE_S)
        if item is not None and await queue.complete(item):
            await redis.execute("RPUSH", "done:ours", item.id)


async def cleaner(reactor: Any, port: int) -> None:
    """Clean the queue again and again."""
    from twisted.internet.task import deferLater

    from disque_tx.workqueue import WorkQueue

    queue = WorkQueue.connect("P", f"redis://127.0.0.1:{port}", reactor)
    while True:
        await queue.light_clean()
        await queue.deep_clean()
        await deferLater(reactor, 0.1)


def main(what: str, port: int) -> None:
    """Run one of these programs."""
    if what == "theirs":
        theirs(port)
    from twisted.internet.task import react

    react({"ours": ours, "cleaner": cleaner}[what], (port,))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
