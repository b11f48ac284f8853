"""All clients have the same commands, described in one place."""

from __future__ import annotations

import inspect

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.client import DisqueClient, aio
from disque_tx.client.blocking import Disque
from disque_tx.client.requests import adding, scans
from disque_tx.client.requests import encoding as requests
from disque_tx.client.steps.commands import WAIT_MS_MAX, Commands, Wait, whole_ms
from tests.client.scripted import FakeTime


class DescriptionTests(SynchronousTestCase):
    """The documentation of methods in ``help()`` and editors."""

    def test_parameters(self) -> None:
        """A method shows the parameters of its command, not those of its implementation."""
        for client in (Disque, DisqueClient, aio.Disque):
            for request in (adding.add_job, requests.ack_jobs, scans.queue_scan, requests.pause):
                of_request = inspect.signature(request)
                of_method = inspect.signature(getattr(client(), request.__name__))
                self.assertEqual(list(of_request.parameters), list(of_method.parameters), request)

    def test_documented(self) -> None:
        """Every command has a docstring, and its own name."""
        for name, method in vars(Commands).items():
            if not name.startswith("_"):
                self.assertEqual(name, method.__name__)
                self.assertTrue(method.__doc__, name)


class WaitTests(SynchronousTestCase):
    """A long wait that consists of shorter ones."""

    def test_limited(self) -> None:
        """The parts add up to the whole timeout, and then the wait ends."""
        time = FakeTime()
        wait, parts_ms = Wait(time.now_s, 25_000), []
        while part_ms := wait.next_ms():
            parts_ms.append(part_ms)
            time.s += part_ms / 1000
        self.assertEqual([WAIT_MS_MAX, WAIT_MS_MAX, 5000], parts_ms)

    def test_for_ever(self) -> None:
        """A wait without a timeout never ends."""
        time = FakeTime()
        wait = Wait(time.now_s, 0)
        time.s += 1e9
        self.assertEqual(WAIT_MS_MAX, wait.next_ms())

    def test_whole_ms(self) -> None:
        """A very short timeout is not rounded to 0, which would mean no timeout."""
        self.assertEqual([0, 1500, 1], [whole_ms(None), whole_ms(1.5), whole_ms(0.0001)])
