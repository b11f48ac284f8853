"""Bindings that last as long as their process."""

from __future__ import annotations

import json
import threading
from typing import Any

import attrs
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.client.options import AddOptions
from disque_tx.integrations.celery import bindings as module
from disque_tx.integrations.celery.bindings import Bindings


class _Client:
    """A client that only adds jobs, as many as it is allowed to. ``added``: queue, body and options
    of each."""

    def __init__(self) -> None:
        self.added: list[tuple[str, Any, tuple[Any, ...]]] = []
        self._allowed = threading.Semaphore(1)
        self._more = threading.Semaphore(0)

    def add_job_with(self, queue: str, body: str, options: AddOptions) -> None:
        """Note this, when it is allowed."""
        self._allowed.acquire(timeout=60)
        self.added.append((queue, json.loads(body), attrs.astuple(options)))
        self._more.release()

    def allow(self, count: int) -> None:
        """Allow so many more jobs."""
        self._allowed.release(count)

    def wait(self, count: int) -> None:
        """Wait until so many jobs were added."""
        for _ in range(count):
            if not self._more.acquire(timeout=10):
                raise AssertionError(f"no more jobs were added: {self.added}")


class PassingTests(SynchronousTestCase):
    """Queues that are not durable, as those of replies and of Celery's remote control."""

    def test_renewed(self) -> None:
        """The binding is made again before it expires, and no more when the process closes it."""
        self.patch(module, "_RENEWAL_S", 0.0)
        client: Any = _Client()
        bindings = Bindings(client, "c:", None)
        self.addCleanup(bindings.close)
        bindings.add("reply", ("key", None, "queue"), False)
        client.allow(2)
        client.wait(3)
        bindings.close()
        # One may have been under way.
        client.allow(1)
        assert bindings._thread is not None
        bindings._thread.join(10)
        self.assertFalse(bindings._thread.is_alive())
        options = attrs.astuple(AddOptions(replicate=1, retry_s=0, ttl_s=60))
        binding = ("c:kombu:bindings:reply", ["key", None, "queue"], options)
        self.assertEqual([binding] * len(client.added), client.added)
