"""The conversion of segments of the event log to lines."""

from __future__ import annotations

import fcntl
import subprocess
import sys
from contextlib import redirect_stderr
from io import StringIO

from disque_tx.services.events.convert import convert
from disque_tx.services.events.segments import Plan, SegmentWriter
from disque_tx.services.machine.files import RealFiles
from disque_tx.wire.events.records import HEADER, MAGIC, NO_BODY, EventRecorder
from tests.core.bench import UNIX_S
from tests.services.events.test_service import NODE, FolderCase

_NAME = "_full-3c0f1d52-17-000000000000.events"


class ConvertTests(FolderCase):
    """One segment."""

    def segment(self, data: bytes) -> str:
        """A rotated segment."""
        self.folder.mkdir()
        path = self.folder / _NAME
        path.write_bytes(data)
        return str(path)

    def recorded(self) -> str:
        """A rotated segment of one event."""
        recorder = EventRecorder()
        self.node.outbox.events = recorder
        self.add(delay_s=60)
        plan = Plan(str(self.folder), NO_BODY, 1, 60)
        (path,) = SegmentWriter(RealFiles(), NODE, 17).write(0, 1, recorder.take(), plan, UNIX_S)
        return path

    def test_no_segment(self) -> None:
        """A file that is no segment is kept under another name."""
        with redirect_stderr(StringIO()) as said:
            self.assertIsNone(convert(self.segment(b"something else")))
        self.assertEqual(["_bad-3c0f1d52-17-000000000000.events"], self.names())
        self.assertIn("not a segment of an event log; kept under a name", said.getvalue())

    def test_without_events(self) -> None:
        """A segment without events leaves no files."""
        with redirect_stderr(StringIO()) as said:
            self.assertIsNone(convert(self.segment(HEADER.pack(MAGIC, NODE, 17, 0, 0) + b"\1")))
        self.assertEqual([], self.names())
        self.assertIn("1 bytes at the end are not an event", said.getvalue())

    def test_again(self) -> None:
        """A segment that was converted is skipped, without an error: the run that converted it
        failed at a later one, and is repeated."""
        path = self.recorded()
        self.assertIsNotNone(convert(path))
        self.assertIsNone(convert(path))
        self.assertEqual(["added"], [line["type"].rpartition(".")[2] for line in self.lines()])

    def test_by_two(self) -> None:
        """Of two programs that convert one segment, the second waits for the first, and then has
        nothing to do: else it would cut off what the first one writes."""
        path = self.recorded()
        program = [sys.executable, "-m", "disque_tx.services.events.convert", path]
        with open(path, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            second = subprocess.Popen(program, stderr=subprocess.PIPE)
            self.addCleanup(second.kill)
            with open("/proc/locks") as locks:
                while f"-> FLOCK  ADVISORY  WRITE {second.pid} " not in locks.read():
                    self.assertIsNone(second.poll())
                    locks.seek(0)
            self.assertEqual([_NAME], self.names())
            (self.folder / _NAME).unlink()
        _, error = second.communicate()
        self.assertEqual((0, b"", []), (second.returncode, error, self.names()))
