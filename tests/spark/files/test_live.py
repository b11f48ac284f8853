"""The event logs of running nodes as a stream and as a table, without Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.spark.errors import BadOption, EventsLost, NodeRefused
from disque_tx.spark.files import remote
from disque_tx.spark.files.live import LOGS_KEPT, LiveEventReader, LiveEventStreamReader
from disque_tx.spark.files.remote import LogFile, event_nodes
from disque_tx.spark.formats.datasources import EventSource
from disque_tx.spark.offered import ReadAllAvailable, ReadLimit, ReadMaxFiles
from disque_tx.spark.options import FormatOptions
from tests.spark.files.eventnodes import EventNode

_HOURS = tuple(f"dt=2026-11-26/hour={hour:02d}" for hour in range(24))


class LiveCase(SynchronousTestCase):
    """Some nodes, and readers of their logs."""

    def setUp(self) -> None:
        self.patch(remote, "_REST_S", 0.001)
        self.nodes = [self.node("aaaaaaaa"), self.node("bbbbbbbb")]
        self.reader = self.stream()
        self.offset = self.reader.initialOffset()

    def node(self, name: str, password: str = "") -> EventNode:
        """A node that serves its log."""
        node = EventNode(Path(self.mktemp()), name, password)
        self.addCleanup(node.stop)
        return node

    def options(self, **given: str) -> FormatOptions:
        """Those of the format, for these nodes."""
        urls = ",".join(node.url for node in self.nodes)
        return FormatOptions("disque_events", {"nodes": urls, **given}, remote.CONNECTION)

    def stream(self, **given: str) -> LiveEventStreamReader:
        """A query that was started."""
        return LiveEventStreamReader(event_nodes(self.options(**given)), 1_000)

    def batch(self, limit: ReadLimit | None = None) -> list[str]:
        """The events of the next batch."""
        start = self.offset
        self.offset = self.reader.latestOffset(start, limit or ReadAllAvailable())
        return self.between(start, self.offset)

    def between(self, start: dict[str, Any], end: dict[str, Any]) -> list[str]:
        """The events between two offsets."""
        return self.ids(self.reader, self.reader.partitions(start, end))

    def ids(self, reader: Any, tasks: Any) -> list[str]:
        """The IDs of the events that tasks read."""
        parts = [part for task in tasks for part in reader.read(task)]
        return [str(row["id"]) for part in parts for row in part.to_pylist()]


class StreamTests(LiveCase):
    """``LiveEventStreamReader``."""

    def test_each_once(self) -> None:
        """Each file of each node is read once, also if the batch is read again, and also by a query
        that was started again."""
        first, second = self.nodes
        first.put(1_000, 0, 2, _HOURS[3])
        second.put(2_000, 0, 1, _HOURS[3])
        self.assertEqual(["aaaaaaaa-1000-0", "aaaaaaaa-1000-1", "bbbbbbbb-2000-0"], self.batch())
        self.assertEqual([], self.batch())
        before = self.offset
        first.put(1_000, 2, 1, _HOURS[4])
        expected = ["aaaaaaaa-1000-2"]
        self.assertEqual(expected, self.batch())
        self.assertEqual(expected, self.between(before, self.offset))
        second.put(2_000, 1, 1, _HOURS[4])
        self.reader = self.stream()
        self.assertEqual(expected, self.between(before, self.offset))
        self.assertEqual(["bbbbbbbb-2000-1"], self.batch())

    def test_restarts(self) -> None:
        """A node that was started again goes on with a new log; what it had not finished before
        comes first. Many restarts do not make offsets long, and no log is left out."""
        first, _second = self.nodes
        found = []
        for boot_ms in range(1_000, 1_000 + 2 * LOGS_KEPT):
            first.put(boot_ms, 0, 1, _HOURS[3])
            first.put(boot_ms, 7, 1, _HOURS[4])
        found += self.batch(ReadMaxFiles(3))
        found += self.batch(ReadMaxFiles(4))
        found += self.batch()
        expected = [
            f"aaaaaaaa-{boot_ms}-{number}"
            for boot_ms in range(1_000, 1_000 + 2 * LOGS_KEPT)
            for number in (0, 7)
        ]
        self.assertEqual(expected, found)
        self.assertEqual(LOGS_KEPT, len(self.offset["logs"]))
        first.put(1_000, 9, 1, _HOURS[5])
        self.assertEqual([], self.batch())

    def test_finished_late(self) -> None:
        """The last file of a start that was killed is finished by a later start; it is read,
        although logs of later starts were read before."""
        first, _second = self.nodes
        for boot_ms in (1_000, 3_000, 4_000):
            first.put(boot_ms, 0, 1, _HOURS[3])
        self.assertEqual(3, len(self.batch()))
        first.put(2_000, 0, 1, _HOURS[3])
        first.put(500, 0, 1, _HOURS[3])
        self.assertEqual(["aaaaaaaa-2000-0"], self.batch())
        self.assertEqual([], self.batch())

    def test_clock_put_back(self) -> None:
        """The order is that of the numbers of events: a clock may be put back while a node runs."""
        first, _second = self.nodes
        first.put(1_000, 5, 1, _HOURS[3])
        first.put(1_000, 0, 1, _HOURS[4])
        self.assertEqual(["aaaaaaaa-1000-0", "aaaaaaaa-1000-5"], self.batch())
        first.put(1_000, 6, 1, _HOURS[3])
        self.assertEqual(["aaaaaaaa-1000-6"], self.batch())

    def test_limit(self) -> None:
        """A batch has no more files than it may have, the oldest ones."""
        first, second = self.nodes
        for number in range(3):
            first.put(1_000, number, 1, _HOURS[number])
            second.put(2_000, number, 1, _HOURS[number])
        self.assertEqual(["aaaaaaaa-1000-0", "bbbbbbbb-2000-0"], self.batch(ReadMaxFiles(2)))
        self.assertEqual(4, len(self.batch()))

    def test_down(self) -> None:
        """While a node is down, the query goes on with the others; its events come later."""
        first, second = self.nodes
        first.put(1_000, 0, 1, _HOURS[3])
        self.batch()
        second.stop()
        first.put(1_000, 1, 1, _HOURS[3])
        second.put(2_000, 0, 1, _HOURS[3])
        self.assertEqual(["aaaaaaaa-1000-1"], self.batch())
        second.start()
        self.assertEqual(["bbbbbbbb-2000-0"], self.batch())

    def test_two_addresses(self) -> None:
        """A daemon that is named twice has one log, and either address will do."""
        first, _second = self.nodes
        other = EventNode(first.folder)
        self.addCleanup(other.stop)
        self.nodes = [first, other]
        self.reader = self.stream()
        first.put(1_000, 0, 1, _HOURS[3])
        start = self.offset
        end = self.reader.latestOffset(start, ReadAllAvailable())
        tasks = self.reader.partitions(start, end)
        first.stop()
        self.addCleanup(first.start)
        self.assertEqual(["aaaaaaaa-1000-0"], self.ids(self.reader, tasks))

    def test_lists_what_is_new(self) -> None:
        """Asking again costs the more the more is new, not the more there is."""
        first, _second = self.nodes
        first.page = 2
        for hour in range(5):
            first.put(1_000, hour, 1, _HOURS[hour])
        self.assertEqual(5, len(self.batch()))
        first.asked.clear()
        self.assertEqual([], self.batch())
        self.assertEqual([_HOURS[3]], first.asked)

    def test_available_now(self) -> None:
        """A query until now ends with what is finished when it begins."""
        first, _second = self.nodes
        first.put(1_000, 0, 1, _HOURS[3])
        first.put(1_000, 1, 1, _HOURS[3])
        self.reader.prepareForTriggerAvailableNow()
        first.put(1_000, 2, 1, _HOURS[3])
        self.assertEqual(["aaaaaaaa-1000-0"], self.batch(ReadMaxFiles(1)))
        self.assertEqual(["aaaaaaaa-1000-1"], self.batch(ReadMaxFiles(1)))
        self.assertEqual([], self.batch(ReadMaxFiles(1)))

    def test_progress(self) -> None:
        """How far it could be is in the progress of the query."""
        first, _second = self.nodes
        first.put(1_000, 0, 1, _HOURS[3])
        first.put(1_000, 4, 1, _HOURS[3])
        self.batch(ReadMaxFiles(1))
        self.assertEqual({"aaaaaaaa-1000": 0}, self.offset["logs"])
        self.assertEqual({"logs": {"aaaaaaaa-1000": 4}}, self.reader.reportLatestOffset())

    def test_removed(self) -> None:
        """Files that were removed before they were read end the query, with what to do."""
        first, _second = self.nodes
        name = first.put(1_000, 0, 1, _HOURS[3])
        start = self.offset
        end = self.reader.latestOffset(start, ReadAllAvailable())
        tasks = self.reader.partitions(start, end)
        (first.folder / name).unlink()
        error = self.assertRaises(EventsLost, self.ids, self.reader, tasks)
        self.assertIn("was removed before it was read", str(error))
        self.reader = self.stream()
        error = self.assertRaises(EventsLost, self.reader.partitions, start, end)
        self.assertIn("log aaaaaaaa-1000 that begins with event 0", str(error))

    def test_busy(self) -> None:
        """A node that serves enough others is asked again a moment later."""
        first, _second = self.nodes
        first.put(1_000, 0, 1, _HOURS[3])
        first.busy = 3
        self.assertEqual(["aaaaaaaa-1000-0"], self.batch())


class RefusalTests(LiveCase):
    """What ends a query at once."""

    def refused(self, **given: str) -> str:
        """Why it cannot be."""
        reader = self.stream(**given)
        limit = ReadAllAvailable()
        return str(self.assertRaises(NodeRefused, reader.latestOffset, self.offset, limit))

    def test_password(self) -> None:
        """A wrong password, and none where one is needed; the right one is used."""
        self.nodes = [self.node("cccccccc", "secret")]
        self.nodes[0].put(1_000, 0, 1, _HOURS[3])
        self.assertIn("401", self.refused())
        self.assertNotIn("wrong", self.refused(**{"disque.password": "wrong"}))
        self.reader = self.stream(**{"disque.password": "secret"})
        self.assertEqual(["cccccccc-1000-0"], self.batch())

    def test_no_log(self) -> None:
        """Nodes without an event log have nothing to read, and never will."""
        self.nodes[1].log = False
        self.assertIn("eventlog yes", self.refused())

    def test_nobody(self) -> None:
        """Wrong addresses are not waited for."""
        for node in self.nodes:
            node.status = 500
        self.assertIn("500", self.refused())

    def test_older(self) -> None:
        """A node of an earlier version says so."""
        self.nodes[0].status = 404
        self.assertIn("older", self.refused())

    def test_table(self) -> None:
        """A table would lack the events of a node that is down."""
        first, second = self.nodes
        first.put(1_000, 0, 1, _HOURS[3])
        reader = LiveEventReader(event_nodes(self.options()))
        self.assertEqual(["aaaaaaaa-1000-0"], self.ids(reader, reader.partitions()))
        self.assertEqual([], list(reader.read(InputPartition(None))))
        second.status = 500
        error = self.assertRaises(NodeRefused, reader.partitions)
        self.assertIn(second.url, str(error))


class OptionTests(LiveCase):
    """The options."""

    def test_addresses(self) -> None:
        """What is no address is refused before anything runs, and so is a password in one."""
        for wrong in (
            "10.0.0.1:7780", "http://", "ftp://a:1", "http://a:x", "http://a:1/api", "http://a:1,",
            "http://a:0", "http://a?b", "http://[::1",
        ):  # fmt: skip
            given = FormatOptions("disque_events", {"nodes": wrong}, remote.CONNECTION)
            self.assertIn(
                "not the address", str(self.assertRaises(BadOption, event_nodes, given)), wrong
            )
        given = FormatOptions("disque_events", {"nodes": "http://me:it@a:1"}, remote.CONNECTION)
        self.assertIn("must not contain", str(self.assertRaises(BadOption, event_nodes, given)))

    def test_unknown(self) -> None:
        """Options of other readers are refused by name."""
        source = EventSource({"nodes": "http://a:1", "table": ""})
        error = self.assertRaises(BadOption, source.reader, StructType())
        self.assertIn("table", str(error))

    def test_names(self) -> None:
        """Whatever a node says its files are called, only names of files are used."""
        for wrong in (
            "",
            "x",
            f"{_HOURS[1]}/x",
            "dt=2026-99-99/hour=01/events-aaaaaaaa-1-1.jsonl.zst",
        ):
            self.assertIsNone(LogFile.of(wrong), wrong)
        self.assertIsNone(LogFile.of(f"{_HOURS[1]}/events-aaaaaaaa-{'9' * 30}-1.jsonl.zst"))
