"""Queues as a stream, as Spark calls it on the driver and in tasks."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq

from disque_tx.spark.errors import BadOption
from disque_tx.spark.offered import ReadAllAvailable
from disque_tx.spark.schema import arrow_schema
from disque_tx.spark.source.batchlog import BatchLog
from disque_tx.spark.source.offsets import Offset
from disque_tx.spark.source.returned import Returned
from disque_tx.spark.source.staged import StagedFile
from tests.spark import nodes
from tests.spark.nodes import IDS, StreamTestCase, address_of

_NONE = b"*-1\r\n"


class StreamTests(StreamTestCase):
    """Readers of one checkpoint, each as if in a process of its own."""

    def test_available_now(self) -> None:
        """A query for what is there now ends after as many jobs as there were, although more
        arrive."""
        node = self.node(
            QCOUNT=nodes.counts(3), WORKING=b":60\r\n", ACKJOB=b":1\r\n",
            GETJOB=[nodes.fetched(*IDS[:2]), nodes.fetched(IDS[2])],
        )  # fmt: skip
        reader = self.reader(node, maxJobsPerTrigger="2")
        reader.prepareForTriggerAvailableNow()
        limit = reader.getDefaultReadLimit()
        start = reader.initialOffset()
        first = reader.latestOffset(start, limit)
        jobs = self.rows(reader, start, first)
        second = reader.latestOffset(first, limit)
        jobs += self.rows(reader, first, second)
        self.assertEqual(second, reader.latestOffset(second, limit))
        self.assertEqual(IDS[:3], jobs)
        counts = [
            words[words.index(b"COUNT") + 1].decode()
            for words in node.requests
            if words[0] == b"GETJOB"
        ]
        self.assertEqual(["2", "1"], counts)
        self.assertEqual([], list(reader.partitions(second, second)))

    def test_lag(self) -> None:
        """A progress says how far the query is behind; it goes on when a node does not
        say."""
        node = self.node(
            QCOUNT=[nodes.counts(7, in_flight=2, oldest_ms=1500), b"-ERR too many\r\n"]
        )
        reader = self.reader(node)
        behind = {"queued": 7, "inFlight": 2, "oldestS": 1.5}
        self.assertEqual({**behind, "queues": {"q": behind}}, reader.reportLatestOffset())
        self.assertIsNone(reader.reportLatestOffset())

    def test_moved_once(self) -> None:
        """Tasks get what GETJOB brought; after a restart, or with columns that it does not bring,
        they read the jobs by their IDs."""
        node = self.node(GETJOB=nodes.fetched(*IDS[:2]), WORKING=b":60\r\n")
        node.answer("SHOW", *(nodes.shown(job_id) for job_id in IDS[:2] * 2))
        for details, asked in (("false", 0), ("true", 2)):
            reader = self.reader(node, includeDetails=details)
            start = reader.initialOffset()
            end = reader.latestOffset(start, reader.getDefaultReadLimit())
            self.assertEqual(IDS[:2], self.rows(reader, start, end))
            self.assertEqual(asked, node.commands().count("SHOW"))
        self.assertEqual(IDS[:2], self.rows(self.reader(node), start, end))
        self.assertEqual(4, node.commands().count("SHOW"))

    def test_into_files(self) -> None:
        """With a table, a batch is one file in its folder, and the only row names it; when the
        batch runs again after a restart, it is another file with the same jobs. Executors, which
        may have other disks, do not read the jobs."""
        node = self.node(GETJOB=nodes.fetched(*IDS[:2]), WORKING=b":60\r\n")
        node.answer("SHOW", *(nodes.shown(job_id) for job_id in IDS[:2]))
        table = str(Path(self.mktemp()).resolve())
        reader = self.reader(node, deltaTable=table)
        start = reader.initialOffset()
        end = reader.latestOffset(start, reader.getDefaultReadLimit())
        folders = set()
        for again in (reader, self.reader(node, deltaTable=table)):
            (part,) = again.partitions(start, end)
            shown = node.commands().count("SHOW")
            (text,) = self.column(again.read(part), "staged_file")
            self.assertEqual(shown, node.commands().count("SHOW"))
            staged = StagedFile.of(text)
            folders.add(staged.staging.folder)
            stored = pq.read_table(f"{table}/{staged.file.path}", partitioning=None)
            self.assertEqual(IDS[:2], stored.column("id").to_pylist())
            self.assertEqual(arrow_schema(staged.ddl).names, stored.column_names)
        self.assertEqual((2, 2), (len(folders), node.commands().count("SHOW")))

    def test_stopped(self) -> None:
        """When a query ends, the last batch is acknowledged if Spark committed it, and only
        then."""
        for is_committed in (False, True):
            node = self.node(GETJOB=nodes.fetched(*IDS[:2]), WORKING=b":60\r\n", ACKJOB=b":1\r\n")
            reader = self.reader(node)
            start = reader.initialOffset()
            end = reader.latestOffset(start, reader.getDefaultReadLimit())
            if is_committed:
                self.commit(end)
            reader.stop()
            acknowledged = [words[1:] for words in node.requests if words[0] == b"ACKJOB"]
            ids = [job_id.encode() for job_id in IDS[:2]]
            self.assertEqual([ids] if is_committed else [], acknowledged)

    def test_given_back(self) -> None:
        """Jobs that the query gave back are not acknowledged with their batch, neither at its end
        nor after a restart; but they are when they were delivered again, in a later one."""
        node = self.node(
            GETJOB=[nodes.fetched(*IDS[:2]), nodes.fetched(IDS[0]), _NONE], WORKING=b":60\r\n"
        )
        node.answer("ACKJOB", b":1\r\n")
        reader = self.reader(node)
        end = reader.latestOffset(reader.initialOffset(), reader.getDefaultReadLimit())
        self.commit(end, "offsets")
        Returned(str(self.checkpoint)).add(IDS[:1])
        self.commit(end)
        reader.stop()
        again = self.reader(node)
        following = again.latestOffset(end, again.getDefaultReadLimit())
        self.assertEqual(IDS[:1], self.rows(again, end, following))
        again.latestOffset(following, again.getDefaultReadLimit())
        acknowledged = [words[1:] for words in node.requests if words[0] == b"ACKJOB"]
        self.assertEqual([[IDS[1].encode()]] * 2 + [[IDS[0].encode()]], acknowledged)

    def test_left_out(self) -> None:
        """Jobs that were left out of a batch, because their node was away, are not acknowledged
        with it after a restart, although the query leaves out no jobs any more."""
        away = self.node()
        away.close()
        alive = self.node(GETJOB=_NONE, ACKJOB=b":1\r\n", SHOW=nodes.shown(IDS[1]))
        alive.answer("WORKING", nodes.GONE, b":60\r\n")
        batch = Offset(1, {address_of(away): IDS[:1], address_of(alive): IDS[1:2]})
        end = BatchLog(str(self.checkpoint)).write(batch, {"seq": 0})
        self.commit(end, "offsets")
        reader = self.reader(alive, failOnDataLoss="false")
        self.assertEqual(IDS[1:2], self.rows(reader, reader.initialOffset(), end))
        self.commit(end)
        again = self.reader(alive)
        again.latestOffset(end, again.getDefaultReadLimit())
        acknowledged = [words[1:] for words in alive.requests if words[0] == b"ACKJOB"]
        self.assertEqual([[IDS[1].encode()]], acknowledged)

    def test_given_back_and_again(self) -> None:
        """A batch that runs again after a restart is read without the jobs that it gave back: they
        may be dead letters by now."""
        node = self.node(GETJOB=nodes.fetched(*IDS[:2]), WORKING=b":60\r\n", SHOW=nodes.NIL)
        node.answer("SHOW", nodes.shown(IDS[1]))
        reader = self.reader(node)
        start = reader.initialOffset()
        end = reader.latestOffset(start, reader.getDefaultReadLimit())
        self.commit(end, "offsets")
        Returned(str(self.checkpoint)).add(IDS[:1])
        self.assertEqual(IDS[1:2], self.rows(self.reader(node), start, end))

    def test_idle_at_the_end(self) -> None:
        """A batch that is acknowledged already is not acknowledged again at the end."""
        node = self.node(
            GETJOB=[nodes.fetched(*IDS[:2]), _NONE], WORKING=b":60\r\n", ACKJOB=b":1\r\n"
        )
        reader = self.reader(node)
        end = reader.latestOffset(reader.initialOffset(), reader.getDefaultReadLimit())
        self.commit(end)
        self.assertEqual(end, reader.latestOffset(end, reader.getDefaultReadLimit()))
        reader.stop()
        self.assertEqual(1, node.commands().count("ACKJOB"))

    def test_once(self) -> None:
        """A trigger after which nobody asks for the next batch is refused, with the one to use."""
        reader = self.reader(self.node())
        with self.assertRaises(BadOption) as raised:
            reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
        self.assertIn("availableNow", str(raised.exception))
