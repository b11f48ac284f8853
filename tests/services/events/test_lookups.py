"""Looking up the events of one job part by part."""

from __future__ import annotations

import json
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.errors import CommandError
from disque_tx.messages import events
from disque_tx.services.events import lookup as steps
from disque_tx.services.events import lookups as module
from disque_tx.services.events.convert import convert
from disque_tx.services.events.lookups import IDLE_S, OPEN_MAX, Lookups
from disque_tx.wire.events.records import HEADER, MAGIC, EventRecorder
from tests.forwardclock import ForwardClock
from tests.services.events.test_lookup import MINE, NODE, OTHER, job


class PartsTests(SynchronousTestCase):
    """A log of which nobody reads all at once."""

    def setUp(self) -> None:
        self.folder = Path(self.mktemp())
        self.folder.mkdir()
        self.clock = ForwardClock()
        self.lookups = Lookups(lambda: [str(self.folder)], self.clock)
        self.addCleanup(self.lookups.close_all)
        self.recorder = EventRecorder()

    def write(self, count: int, name: str = "_open", job_id: bytes = MINE) -> str:
        """A segment with so many events of a job."""
        for _ in range(count):
            self.recorder.wall_us += 1_000_000
            self.recorder.job(events.DELIVERED, job(job_id), events.NO_REASON, 7, 20)
        path = self.folder / f"{name}-3c0f1d52-1-{self.recorder.wall_us:014d}.events"
        path.write_bytes(HEADER.pack(MAGIC, NODE, 1, 0, 0) + self.recorder.take())
        return str(path)

    def read_all(self, job_id: bytes = MINE) -> tuple[list[list[bytes]], bool]:
        """All parts, and whether these were all events."""
        parts = []
        number = 0
        while True:
            number, complete, part = self.lookups.read(job_id, number)
            parts.append(part)
            if number == 0:
                return parts, complete

    def test_parts(self) -> None:
        """No part is long, together they are all events of the job, and nothing stays open."""
        self.write(120)
        self.write(3, job_id=OTHER)
        parts, complete = self.read_all()
        self.assertEqual((120, True), (sum(map(len, parts)), complete))
        self.assertLessEqual(max(map(len, parts)), 50)
        event = json.loads(parts[0][0])
        self.assertEqual(("delivered", 20, "7"), (event["kind"], event["wait_ms"], event["client"]))
        self.assertEqual([], self.clock.getDelayedCalls())

    def test_long_log(self) -> None:
        """A part looks at a bounded piece of the log, whether it finds something there or not."""
        self.patch(steps, "STEP_BYTES", 100)
        self.write(200, job_id=OTHER)
        parts, complete = self.read_all()
        self.assertEqual((0, True), (sum(map(len, parts)), complete))
        self.assertGreater(len(parts), 20)

    def test_newest(self) -> None:
        """A job that has more events than anybody reads gets those of the newest files, and it is
        said that there are others."""
        self.patch(module, "EVENTS_MAX", 10)
        convert(self.write(5, "_full"))
        self.write(20)
        parts, complete = self.read_all()
        self.assertEqual((20, False), (sum(map(len, parts)), complete))

    def assert_over(self, number: int, job_id: bytes = MINE) -> None:
        """Nobody can go on with this number."""
        with self.assertRaises(CommandError) as caught:
            self.lookups.read(job_id, number)
        self.assertEqual("This lookup is over, begin again with 0", caught.exception.text)

    def test_given_up(self) -> None:
        """Who does not go on leaves no file open."""
        self.write(120)
        number, _, _ = self.lookups.read(MINE, 0)
        self.clock.advance(IDLE_S - 0.1)
        number, _, _ = self.lookups.read(MINE, number)
        self.clock.advance(IDLE_S)
        self.assert_over(number)

    def test_many_at_once(self) -> None:
        """The oldest lookup ends when there are too many; each goes on for its own job only, and
        once."""
        self.write(120)
        first, _, _ = self.lookups.read(MINE, 0)
        second, _, _ = self.lookups.read(MINE, 0)
        for _ in range(OPEN_MAX - 1):
            self.lookups.read(MINE, 0)
        self.assert_over(first)
        self.assert_over(second, OTHER)
        self.lookups.read(MINE, second)
        self.assert_over(second)
