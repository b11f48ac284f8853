"""The Redis work queue, on the same keys as its other implementations; and the same over Disque.

:class:`WorkQueue` on Redis, :class:`DisqueWorkQueue` on Disque, :class:`Item` for what they hold,
:class:`CleaningService` for what workers leave behind. They use no server code.
"""

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
from disque_tx.workqueue.service import CleaningService

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
