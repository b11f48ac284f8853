"""The daemon cleans Redis work queues."""

from __future__ import annotations

from functools import partial
from typing import Any

import redis

from tests.acceptance.daemon import DaemonTestCase, wait_for
from tests.acceptance.redisserver import RedisServer


class CleaningTests(DaemonTestCase):
    """``workqueue-redis`` and the other directives for work queues."""

    def server(self, *options: str) -> RedisServer:
        """A Redis server that is stopped at the end of the test."""
        server = RedisServer(self.folder(), *options).start()
        self.addCleanup(server.stop)
        return server

    def abandon(self, client: Any, prefix: str) -> None:
        """Add an item whose worker died."""
        client.set(f"{prefix}:item:1", b"data")
        client.lpush(f"{prefix}:processing", "1")

    def test_cleans(self) -> None:
        """Items whose workers died are returned, in all queues that are configured; the server's
        password is not logged."""
        server = self.server("--requirepass", "secret")
        client = redis.Redis(port=server.port, password="secret")
        self.addCleanup(client.close)
        daemon = self.running(
            f"workqueue-redis redis://:secret@127.0.0.1:{server.port}/0",
            "workqueue-prefixes images mail",
            "workqueue-clean-every 1",
        )
        for prefix in ("images", "mail"):
            self.abandon(client, prefix)
        for prefix in ("images", "mail"):
            wait_for(
                partial(client.lrange, f"{prefix}:queue", 0, -1),
                "the item is returned to its queue",
            )
        self.assertEqual(0, daemon.terminate())
        self.assertNotIn("secret", daemon.log())

    def test_server_is_gone(self) -> None:
        """Without its Redis server the daemon serves clients, and logs the failure."""
        daemon = self.running("workqueue-redis redis://127.0.0.1:1/0", "workqueue-prefixes images")
        wait_for(lambda: "Cleaning" in daemon.log(), "the failure is logged")
        self.assertEqual("PONG", daemon.client().call("PING"))

    def test_wrong_url(self) -> None:
        """A malformed URL ends the daemon at once, with an error that shows the correct form."""
        daemon = self.daemon(
            "workqueue-redis redis://host:99999", "workqueue-prefixes images", in_file=True
        )
        daemon.spawn()
        self.assertEqual(1, daemon.wait())
        self.assertIn("workqueue-redis: The address of a Redis server looks like", daemon.log())
