"""Fetching again and again: when, and what the log says of it."""

from __future__ import annotations

from itertools import pairwise
from random import Random
from typing import Any

from twisted.logger import formatEvent
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.worker.fetching import Fetcher, Priority
from tests.forwardclock import ForwardClock
from tests.logged import observe
from tests.worker.memory import MemoryClient, lost


class FetcherTests(SynchronousTestCase):
    """One request at a time."""

    def setUp(self) -> None:
        self.clock = ForwardClock()
        self.client = MemoryClient(self.clock)
        self.room = 1
        self.lasting = False
        self.got: list[str] = []
        self.fetcher = Fetcher(
            self.client, Priority(["a"]), self.clock, Random(1), lambda: self.room, self.arrived
        )

    def arrived(self, jobs: list[Any]) -> None:
        """Jobs were delivered, which take all the room, unless it lasts."""
        self.got += [job.id for job in jobs]
        if not self.lasting:
            self.room = 0

    def test_no_room_any_more(self) -> None:
        """A worker whose last slot was taken meanwhile asks for nothing; it asks again when there
        is room."""
        job_id = self.client.put("a")
        self.fetcher.fetch_more()
        self.room = 0
        self.clock.advance(0)
        self.assertEqual([], self.client.calls)
        self.room = 1
        self.fetcher.fetch_more()
        self.fetcher.fetch_more()
        self.clock.advance(0)
        self.assertEqual(([job_id], 1), (self.got, len(self.client.times("GETJOB"))))

    def test_room_for_more(self) -> None:
        """While there is room, jobs are fetched one after another, and nothing is said of it."""
        said = self.said()
        self.lasting = True
        self.fetcher.fetch_more()
        ids = []
        for _ in range(3):
            ids.append(self.client.put("a"))
            self.clock.advance(0)
        self.assertEqual((ids, []), (self.got, said))

    def test_no_room(self) -> None:
        """Without room nothing is planned."""
        self.room = 0
        self.fetcher.fetch_more()
        self.assertEqual([], self.clock.getDelayedCalls())

    def test_taken_back(self) -> None:
        """A request that was taken back has not failed, and if there is room after all, another one
        follows at once."""
        said = self.said()
        self.fetcher.fetch_more()
        self.clock.advance(0)
        self.fetcher.stop()
        self.assertEqual(0, len(self.client.waiting))
        self.clock.advance(0)
        self.assertEqual((1, []), (len(self.client.waiting), said))

    def test_said_at_once(self) -> None:
        """The first failure of an outage is in the log, and jobs after it are an end of it only
        once."""
        said = self.said()
        self.lasting = True
        for outage in (1, 2):
            self.client.broken = lost
            self.fetcher.stop()
            self.fetcher.fetch_more()
            self.clock.advance(0)
            self.assertEqual(2 * outage - 1, len(said))
            self.client.broken = lambda command: None
            for _ in range(3):
                self.client.put("a")
                self.clock.pump([1.0] * 10)
            self.assertEqual(2 * outage, len(said))
        self.assertEqual(6, len(self.got))

    def said(self) -> list[str]:
        """What is in the log from now on."""
        said: list[str] = []
        observe(self, lambda event: said.append(formatEvent(event)))
        return said

    def test_outages(self) -> None:
        """An operator reads once that no jobs can be fetched, and once that they can be again, of
        each outage; and each begins with short pauses."""
        said = self.said()
        pauses: list[list[float]] = []
        for _ in range(2):
            self.room = 1
            self.client.broken = lost
            before = len(self.client.times("GETJOB"))
            self.fetcher.fetch_more()
            self.clock.pump([0.05] * 400)
            times = self.client.times("GETJOB")[before:]
            pauses.append([b - a for a, b in pairwise(times)])
            self.client.broken = lambda command: None
            self.client.put("a")
            self.clock.pump([0.05] * 2000)
        begun = "No jobs can be fetched; retrying: "
        expected = [begun, "Jobs can be fetched again"] * 2
        self.assertEqual(expected, [one[: len(begun)] for one in said])
        self.assertEqual(2, len(self.got))
        for found in pauses:
            self.assertGreater(found[-1], 2 * found[0])
        self.assertLess(pauses[1][0], pauses[0][-1])

    def test_stopped(self) -> None:
        """A request that has not left yet does not leave any more; one that waits is taken back,
        and the next one can be made."""
        self.fetcher.fetch_more()
        self.fetcher.stop()
        self.clock.advance(1)
        self.assertEqual([], self.client.calls)
        self.fetcher.fetch_more()
        self.clock.advance(0)
        self.assertEqual(1, len(self.client.waiting))
        self.room = 0
        self.fetcher.stop()
        self.assertEqual(0, len(self.client.waiting))
        self.client.put("a")
        self.clock.advance(1)
        self.assertEqual([], self.got)
        self.room = 1
        self.fetcher.fetch_more()
        self.clock.advance(0)
        self.assertEqual(1, len(self.got))
