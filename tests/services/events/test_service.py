"""The event log on disk: segments, rotation, conversion to lines, and failing disks."""

from __future__ import annotations

import errno
import fcntl
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import zstandard
from twisted.internet.defer import Deferred, maybeDeferred
from twisted.internet.error import ProcessDone, ProcessTerminated
from twisted.internet.protocol import ProcessProtocol
from twisted.internet.task import Clock
from twisted.python.failure import Failure

from disque_tx.config.settings import Settings
from disque_tx.services.events import service as module
from disque_tx.services.events.convert import convert
from disque_tx.services.events.segments import Plan, SegmentWriter
from disque_tx.services.events.service import EventLog
from disque_tx.services.machine.files import RealFile, RealFiles
from disque_tx.services.machine.log import DaemonLog
from disque_tx.services.machine.platform import Platform
from disque_tx.wire.events.records import NO_BODY
from tests.core.bench import UNIX_S, NodeCase
from tests.services.nodebench import BenchClock

NODE = b"3c0f1d52" * 5


class FullDisk(RealFiles):
    """A disk on which writes fail while it is ``full``."""

    full = False

    def create(self, path: str) -> RealFile:
        if self.full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return super().create(path)


class ConvertingReactor(Clock):
    """Runs the converter in this process. ``fails``: as if it had been killed; ``held``:
    conversions that do not end before :meth:`let_go`."""

    fails = False
    holding = False

    def __init__(self) -> None:
        super().__init__()
        self.runs: list[list[str]] = []
        self.held: list[tuple[ProcessProtocol, list[str]]] = []

    def spawnProcess(
        self, protocol: ProcessProtocol, executable: str, args: list[str], env: object
    ) -> None:
        paths = args[3:]
        self.runs.append(paths)
        self.held.append((protocol, paths))
        if not self.holding:
            self.let_go()

    def let_go(self) -> None:
        """All held conversions end."""
        held, self.held = self.held, []
        for protocol, paths in held:
            if self.fails:
                protocol.errReceived(b"no room")
                protocol.processEnded(Failure(ProcessTerminated(1)))
                continue
            for path in paths:
                convert(path)
            protocol.processEnded(Failure(ProcessDone(0)))


class FolderCase(NodeCase):
    """Tests with a folder for events."""

    def setUp(self) -> None:
        super().setUp()
        self.folder = Path(self.mktemp())

    def names(self) -> list[str]:
        """The files in the folder."""
        return sorted(
            str(path.relative_to(self.folder)) for path in self.folder.rglob("*") if path.is_file()
        )

    def lines(self) -> list[dict[str, Any]]:
        """The lines in all finished files, in the order of their names."""
        found = []
        for name in self.names():
            if name.endswith(".zst"):
                with open(self.folder / name, "rb") as file:
                    text = zstandard.ZstdDecompressor().stream_reader(file).read()
                found += [json.loads(line) for line in text.splitlines()]
        return found

    def unlock(self) -> None:
        """Remove the lock on the open segment, as when its process was killed."""
        (path,) = self.folder.glob("_open-*")
        data = path.read_bytes()
        path.unlink()
        path.write_bytes(data)


class SegmentWriterTests(FolderCase):
    """Segments on disk."""

    def setUp(self) -> None:
        super().setUp()
        self.plan = Plan(str(self.folder), NO_BODY, 1000, 60)
        self.writer = SegmentWriter(RealFiles(), NODE, 17)

    def write(self, first: int, size: int = 10, now_s: int = UNIX_S) -> list[str]:
        """A batch of one record."""
        paths = self.writer.write(first, 1, b"x" * size, self.plan, now_s)
        return [os.path.basename(path) for path in paths]

    def test_rotation(self) -> None:
        """A segment ends when it is large, old, or from another hour; the next one follows at
        once."""
        self.assertEqual([], self.write(0))
        self.assertEqual(["_full-3c0f1d52-17-000000000000.events"], self.write(1, 1000))
        self.write(2)
        self.assertEqual([], self.writer.rotate_old(UNIX_S + 59))
        self.assertEqual(1, len(self.writer.rotate_old(UNIX_S + 60)))
        self.write(3, now_s=3600 * 9 - 1)
        self.assertEqual(["_full-3c0f1d52-17-000000000003.events"], self.write(4, now_s=3600 * 9))
        self.assertEqual([], self.writer.rotate())

    def test_gap(self) -> None:
        """Numbers in a segment are consecutive, so dropped events show between two segments."""
        self.write(0)
        self.assertEqual(["_full-3c0f1d52-17-000000000000.events"], self.write(5))
        self.assertEqual("_open-3c0f1d52-17-000000000005.events", self.names()[1])

    def test_left_behind(self) -> None:
        """Segments of a killed process are found, and those of other nodes are left alone."""
        self.write(0)
        self.unlock()
        SegmentWriter(RealFiles(), b"f" * 40, 17).write(0, 1, b"x", self.plan, UNIX_S)
        again = SegmentWriter(RealFiles(), NODE, 18)
        found = again.left_behind(str(self.folder))
        self.assertEqual([str(self.folder / "_full-3c0f1d52-17-000000000000.events")], found)
        self.assertIn("_open-ffffffff-17-000000000000.events", self.names())
        self.assertEqual(found, again.left_behind(str(self.folder)))

    def test_not_left_behind(self) -> None:
        """A segment that a live process with the same node ID writes to is left alone, as when a
        node's files were copied."""
        self.write(0)
        self.assertEqual([], SegmentWriter(RealFiles(), NODE, 18).left_behind(str(self.folder)))
        self.assertEqual(["_open-3c0f1d52-17-000000000000.events"], self.names())


class EventLogTests(FolderCase):
    """The service."""

    def setUp(self) -> None:
        super().setUp()
        self.reactor = ConvertingReactor()
        self.files = FullDisk()
        self.written = Path(self.mktemp())
        self.settings = Settings(dir="/", eventlog=True, eventlog_dir=str(self.folder))
        self.service = self.new_service()

    def new_service(self, in_thread: Callable[..., Any] = maybeDeferred) -> EventLog:
        """A service that runs its thread's work at once."""
        return EventLog(
            self.node,
            self.settings,
            Platform(
                self.reactor,
                BenchClock(self.reactor),
                self.files,
                DaemonLog("debug", str(self.written)),
                in_thread,
            ),
        )

    def start(self) -> None:
        """Start the service, to be stopped at the end of the test."""
        self.service.startService()
        self.addCleanup(self.stop)

    def stop(self) -> None:
        """Stop the service unless it was stopped."""
        if self.service.running:
            self.successResultOf(self.service.stopService())
        self.assertEqual([], self.reactor.getDelayedCalls())

    def types(self) -> list[str]:
        """The types of the events in finished files."""
        return [line["type"].rpartition(".")[2] for line in self.lines()]

    def test_off(self) -> None:
        """By default there is no event log, and it costs nothing."""
        self.settings.eventlog = False
        self.start()
        self.add()
        self.stop()
        self.assertFalse(self.folder.exists())
        self.assertEqual([], self.reactor.runs)

    def test_rotates(self) -> None:
        """Events are on disk within a second, and lines when the segment is old enough."""
        self.start()
        self.add()
        self.reactor.advance(1)
        self.assertEqual(1, len(self.names()))
        self.assertEqual([], self.lines())
        self.reactor.pump([60] * 5)
        self.assertEqual(["added", "queued"], self.types())
        self.assertEqual(1, len(self.names()))
        folder = self.names()[0].rpartition("/")[0]
        self.assertEqual("dt=2026-11-20/hour=12", folder)

    def test_many_events(self) -> None:
        """If there are many, they are written before the second ends."""
        self.settings.eventlog_body = "yes"
        self.start()
        self.add(body=b"x" * module.FLUSH_BYTES)
        self.service.turn_ended()
        self.assertEqual(1, len(self.names()))

    def test_end(self) -> None:
        """When the node stops, all segments are converted."""
        self.start()
        self.add()
        self.stop()
        self.assertEqual(["added", "queued"], self.types())
        self.assertIsNone(self.node.outbox.events)

    def test_slow_converter(self) -> None:
        """The node waits for the converter when it stops, but not indefinitely."""
        self.reactor.holding = True
        self.start()
        self.add()
        stopped: Deferred[Any] = self.service.stopService()
        self.assertNoResult(stopped)
        self.reactor.advance(5)
        self.successResultOf(stopped)

    def test_settings(self) -> None:
        """CONFIG SET enables and disables it, and changes what is included."""
        self.settings.eventlog = False
        self.start()
        self.add()
        self.settings.eventlog, self.settings.eventlog_queues = True, "m*"
        self.service.settings_changed()
        self.add(b"mail")
        self.add(b"images")
        self.settings.eventlog_body = "yes"
        self.service.settings_changed()
        self.add(b"music")
        self.settings.eventlog = False
        self.service.settings_changed()
        self.add(b"mail")
        found = [(line["messaging.destination.name"], line.get("body")) for line in self.lines()]
        expected = [("mail", None), ("mail", None), ("music", "Ym9keQ=="), ("music", None)]
        self.assertEqual(expected, found)

    def test_disk_full(self) -> None:
        """A full disk costs events, which are counted, but never a job; it is logged once."""
        self.files.full = True
        self.start()
        for _ in range(5):
            self.add()
            self.reactor.advance(1)
        self.assertEqual(10, self.service.dropped)
        self.assertEqual(5, self.length())
        self.assertEqual(1, self.written.read_text().count("can't be written"))
        self.assertEqual("err", dict(self.service.info())["eventlog_status"])

    def test_room_again(self) -> None:
        """Once there is room, events are written again, and the gap is visible."""
        self.files.full = True
        self.start()
        self.add()
        self.reactor.advance(1)
        self.files.full = False
        self.add()
        self.reactor.advance(1)
        self.assertEqual(4, self.service.dropped)
        self.reactor.advance(10)
        self.add()
        self.stop()
        self.assertEqual(["4", "5"], [line["id"].rpartition(".")[2] for line in self.lines()])
        self.assertIn("writing again; events dropped: 4", self.written.read_text())
        self.assertEqual("ok", dict(self.service.info())["eventlog_status"])

    def test_failed_conversion(self) -> None:
        """A failed conversion is tried again a minute later without losing events."""
        self.reactor.fails = True
        self.start()
        self.add()
        self.reactor.pump([60] * 6)
        self.assertIn("Event log: no room", self.written.read_text())
        self.reactor.fails = False
        self.reactor.advance(60)
        self.assertEqual(["added", "queued"], self.types())
        self.assertEqual(1, self.service.conversion.converted)

    def test_slow_disk(self) -> None:
        """The memory for events that wait for the disk is bounded: further events are dropped.
        Afterwards there is as much room as before."""
        self.patch(module, "_WAITING_BYTES_MAX", 10_000)
        waiting: list[tuple[Deferred[Any], Callable[[], Any]]] = []
        slow = True

        def in_thread(work: Callable[[], Any]) -> Deferred[Any]:
            if not slow:
                return maybeDeferred(work)
            waiting.append((Deferred(), work))
            return waiting[-1][0]

        self.service = self.new_service(in_thread)
        self.start()
        counts = []
        for _ in range(3):
            dropped, begun = self.service.dropped, self.service.recorder.events
            while self.service.dropped == dropped:
                self.add(body=b"x" * 100)
                self.service.flush()
            counts.append(self.service.recorder.events - begun)
            while waiting:
                done, work = waiting.pop(0)
                done.callback(work())
        self.assertEqual([counts[0]] * 3, counts)
        slow = False

    def test_changed_while_converting(self) -> None:
        """A setting that is changed while a segment is converted does not have it converted
        twice."""
        self.reactor.holding = True
        self.start()
        self.add()
        self.settings.eventlog_body = "yes"
        self.service.settings_changed()
        self.reactor.holding = False
        self.reactor.let_go()
        self.assertEqual(1, len(self.reactor.runs))
        self.assertEqual(1, self.service.conversion.converted)
        self.assertEqual(0, self.service.conversion.pending)

    def test_too_many_segments(self) -> None:
        """If the converter is too slow, the number of segments is bounded."""
        self.reactor.holding = True
        self.settings.eventlog_rotate_size = 1
        self.start()
        for _ in range(100):
            self.add()
            self.service.flush()
        self.assertLess(len(self.names()), 70)
        self.assertGreater(self.service.dropped, 50)
        self.reactor.holding = False
        self.reactor.let_go()

    def test_next_start_while_converting(self) -> None:
        """A segment that the converter of the node's former start has locked is converted all the
        same: that converter may be killed before its end."""
        self.folder.mkdir()
        writer = SegmentWriter(RealFiles(), self.node.id, 17)
        writer.write(0, 1, b"", Plan(str(self.folder), NO_BODY, 1, 60), UNIX_S)
        (segment,) = self.folder.iterdir()
        with open(segment, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            self.reactor.holding = True
            self.start()
        self.assertEqual([[str(segment)]], self.reactor.runs)
        self.reactor.holding = False
        self.reactor.let_go()

    def test_next_start(self) -> None:
        """Segments of a killed node are converted at the next start."""
        self.service.startService()
        self.add()
        self.reactor.advance(1)
        self.node.outbox.events = None
        for call in self.reactor.getDelayedCalls():
            call.cancel()
        self.unlock()
        self.service = self.new_service()
        self.start()
        self.assertEqual(["added", "queued"], self.types())
