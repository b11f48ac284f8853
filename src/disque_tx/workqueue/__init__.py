"""The Redis work queue, on the same keys as its other implementations; and the same on Disque.

:class:`WorkQueue` uses Redis, :class:`DisqueWorkQueue` uses Disque; both hold :class:`Item`.
:class:`CleaningService` returns items whose workers have died. No server code is used.
"""

from disque_tx.workqueue.cleaning import CleaningService
from disque_tx.workqueue.errors import (
    BadRedisUrl,
    MoveRefused,
    NotJson,
    NotOnDisque,
    PasswordRefused,
    RedisLost,
    RedisRefused,
    WorkQueueError,
    WrongKeyType,
)
from disque_tx.workqueue.items import Counts, Item, KeyPrefix
from disque_tx.workqueue.queue import WorkQueue
from disque_tx.workqueue.redis import Redis

__all__ = [
    "BadRedisUrl",
    "CleaningService",
    "Counts",
    "Item",
    "KeyPrefix",
    "MoveRefused",
    "NotJson",
    "NotOnDisque",
    "PasswordRefused",
    "Redis",
    "RedisLost",
    "RedisRefused",
    "WorkQueue",
    "WorkQueueError",
    "WrongKeyType",
]
