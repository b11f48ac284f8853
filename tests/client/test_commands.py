"""Both clients have the same commands, described in one place."""

from __future__ import annotations

import inspect

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.client import DisqueClient, requests
from disque_tx.client.blocking import Disque
from disque_tx.client.commands import Commands


class DescriptionTests(SynchronousTestCase):
    """What ``help()`` and editors show of a method."""

    def test_parameters(self) -> None:
        """A program that looks a method up sees what it takes, and not how it was made."""
        for client in (Disque, DisqueClient):
            for name in ("add_job", "ack_jobs", "queue_scan", "pause"):
                of_request = inspect.signature(getattr(requests, name))
                of_method = inspect.signature(getattr(client(), name))
                self.assertEqual(list(of_request.parameters), list(of_method.parameters), name)

    def test_documented(self) -> None:
        """Every command says what it is for, under its own name."""
        for name, method in vars(Commands).items():
            if not name.startswith("_"):
                self.assertEqual(name, method.__name__)
                self.assertTrue(method.__doc__, name)
