"""Redis work queues that the daemon cleans, if it is configured to.

Nothing here touches the node; Redis is another server, which may come and go.
"""

from __future__ import annotations

import os
from typing import Any

from twisted.application.service import Service
from twisted.internet.defer import Deferred, succeed

from disque_tx.config.settings import Settings
from disque_tx.errors import ConfigError
from disque_tx.workqueue import BadRedisUrl, CleaningService, Redis, WorkQueue


class WorkQueueCleaning(Service):
    """Cleans the work queues with the prefixes of ``workqueue-prefixes`` at the server of
    ``workqueue-redis``. The password: in the URL, or in the variable REDIS_PASSWORD.

    :raises ConfigError: when the URL is not that of a Redis server.
    """

    def __init__(self, settings: Settings, reactor: Any) -> None:
        password = os.environ.get("REDIS_PASSWORD")
        try:
            self._redis = Redis.at(settings.workqueue_redis, reactor, password=password)
        except BadRedisUrl as error:
            raise ConfigError(f"workqueue-redis: {error}") from None
        self._cleaning = CleaningService(
            [WorkQueue(prefix, self._redis) for prefix in settings.workqueue_prefixes],
            settings.workqueue_clean_every,
            settings.workqueue_deep_clean_every or None,
            clock=reactor,
        )

    def startService(self) -> None:
        """Clean now, and from then on."""
        super().startService()
        self._cleaning.startService()

    def stopService(self) -> Deferred[Any]:
        """Fires when no clean is under way and the connections are closed."""
        super().stopService()
        ended = self._cleaning.stopService() or succeed(None)
        return ended.addBoth(lambda _: self._redis.close())
