"""Looking up the events of one job in the files of the event log."""

from __future__ import annotations

import json
import os
import tracemalloc
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.messages import events
from disque_tx.messages.records import JobRecord
from disque_tx.services.events import lookup as module
from disque_tx.services.events.convert import convert
from disque_tx.services.events.lookup import Lookup
from disque_tx.wire.events.records import HEADER, MAGIC, EventRecorder

NODE = b"3c0f1d52" * 5
MINE = b"D-3c0f1d52-000000000000000000000001-05a1"
OTHER = b"D-3c0f1d52-000000000000000000000002-05a1"


def job(job_id: bytes, body: bytes = b"x") -> JobRecord:
    """A job."""
    return JobRecord(job_id, b"q", body, (NODE,), 0, 0, delay_s=0, retry_s=60, repl=1)


class LookupTests(SynchronousTestCase):
    """A folder with files of all kinds."""

    def setUp(self) -> None:
        self.folder = Path(self.mktemp())
        self.folder.mkdir()
        self.recorder = EventRecorder()
        self.recorder.bodies = True
        self.recorder.wall_us = 1_795_202_588_193_000

    def record(self, kind: int, job_id: bytes = MINE) -> None:
        """Something happens to a job."""
        self.recorder.wall_us += 1_000_000
        self.recorder.job(kind, job(job_id), events.NO_REASON, 7, -1)

    def segment(self, name: str) -> str:
        """Write what happened to a segment; returns its path."""
        path = self.folder / f"{name}-3c0f1d52-1-{len(os.listdir(self.folder)):012d}.events"
        path.write_bytes(HEADER.pack(MAGIC, NODE, 1, 0, 0) + self.recorder.take())
        return str(path)

    def found(self, lookup: Lookup | None = None) -> list[str]:
        """The kinds of the events that are found."""
        lookup = lookup or Lookup([str(self.folder)], MINE)
        lines = [json.loads(line) for some in lookup for line in some]
        self.assertEqual({MINE.decode()}, {line["subject"] for line in lines} | {MINE.decode()})
        return [line["type"].rpartition(".")[2] for line in lines]

    def test_everywhere(self) -> None:
        """What is written just now, what waits for conversion, and what is converted is found; a
        body that looks like the ID of the job is no event of it."""
        self.recorder.added(job(MINE), 60, events.NO_REASON, 7, True)
        self.record(events.DELIVERED, OTHER)
        convert(self.segment("_full"))
        self.record(events.DELIVERED)
        self.segment("_full")
        self.recorder.added(job(OTHER, MINE * 2), 60, events.NO_REASON, 7, True)
        self.record(events.ACKED)
        self.segment("_open")
        self.assertEqual(["acked", "delivered", "added", "queued"], self.found())

    def test_steps(self) -> None:
        """A node with a long log serves its clients between two steps, and an ID at the end of one
        is found as well, once."""
        self.patch(module, "STEP_BYTES", 50)
        for _ in range(20):
            self.record(events.WORKING)
            self.record(events.WORKING, OTHER)
        self.segment("_open")
        steps = list(Lookup([str(self.folder)], MINE))
        self.assertEqual(20, sum(map(len, steps)))
        self.assertTrue(all(len(step) <= 1 for step in steps), steps)

    def test_memory(self) -> None:
        """Of a long segment a part at a time is in memory, not mapped either: several lookups at
        once would take as much as the files are long."""
        self.recorder.added(job(OTHER, bytes(8 << 20)), 60, events.NO_REASON, 7, True)
        self.record(events.ACKED)
        path = self.segment("_open")
        tracemalloc.start()
        self.addCleanup(tracemalloc.stop)
        found = []
        for lines in Lookup([str(self.folder)], MINE):
            found += lines
            self.assertNotIn(os.path.basename(path), Path("/proc/self/maps").read_text())
        self.assertEqual(1, len(found))
        self.assertTrue(tracemalloc.get_traced_memory()[1] < 4 << 20)

    def test_bounded(self) -> None:
        """A log of a year is not read for one job; that there is more is not concealed."""
        self.record(events.DELIVERED)
        convert(self.segment("_full"))
        self.record(events.ACKED)
        self.segment("_open")
        self.patch(module, "LOOKUP_BYTES_MAX", 10)
        lookup = Lookup([str(self.folder)], MINE)
        self.assertEqual((["acked"], False), (self.found(lookup), lookup.complete))

    def test_damaged(self) -> None:
        """Files that are damaged, empty or torn hide nothing that is in others."""
        self.record(events.DELIVERED)
        path = convert(self.segment("_full"))
        assert path is not None
        Path(path).with_name("events-z.jsonl.zst").write_bytes(b"no zstd " + MINE)
        (self.folder / "_open-a.events").write_bytes(b"")
        (self.folder / "_full-b.events").write_bytes(b"\0" * 200 + MINE)
        self.record(events.ACKED)
        torn = Path(self.segment("_open"))
        torn.write_bytes(torn.read_bytes()[:-3])
        self.assertEqual(["delivered"], self.found())

    def test_several_folders(self) -> None:
        """What the processes of a daemon have in folders of their own is found together."""
        self.record(events.ADDED)
        self.segment("_open")
        first, self.folder = self.folder, Path(self.mktemp())
        self.folder.mkdir()
        self.record(events.DELIVERED)
        self.segment("_full")
        lookup = Lookup([str(first), str(self.folder)], MINE)
        self.assertEqual(["added", "delivered"], sorted(self.found(lookup)))
        self.assertEqual(2, lookup.files)

    def test_no_folder(self) -> None:
        """A node that has logged nothing yet has no folder."""
        lookup = Lookup([str(self.folder / "none")], MINE)
        self.assertEqual(([], True), (self.found(lookup), lookup.complete))
