"""Five seconds: of each of twelve incidents the first finding is what is wrong, and a quiet node
has none."""

from __future__ import annotations

from typing import Any

import attrs
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.core.jobs.job import Job
from disque_tx.core.statistics.rings import Record
from disque_tx.core.statistics.waits import Histogram
from disque_tx.diagnosis.answers import merged_failures, with_versions
from disque_tx.diagnosis.facts import FailureFacts, Survey
from disque_tx.diagnosis.finding import Finding
from disque_tx.diagnosis.findings import findings
from disque_tx.messages.nodes import FAIL, NodeEntry
from tests.diagnosis.test_nodes import found, node, node_view
from tests.protocols.http.api.queues.test_queues import SlicedCase

_PATH = "/api/v1/findings?scope=cluster"


class QueueIncidentTests(SlicedCase):
    """Incidents of queues and of a node, on a real one, as the console and HTTP tell them."""

    def setUp(self) -> None:
        super().setUp()
        self.node = self.root.server.node

    def add(self, queue: bytes = b"mail", *options: bytes, waited_s: int = 0) -> Job:
        """A job that was queued so long ago."""
        job = self.node.jobs.get(self.call(b"ADDJOB", queue, b"x", b"0", *options).text)
        assert isinstance(job, Job)
        job.moved_ms -= waited_s * 1000
        return job

    def fail_deliveries(self, number: int, reason: bytes = b"") -> None:
        """So many deliveries fail."""
        for _ in range(number):
            ((_queue, job_id, _body),) = self.call(b"GETJOB", b"FROM", b"mail")
            words = (b"DELAY", b"0", b"REASON", reason) if reason else ()
            self.call(b"NACK", *words, job_id)

    def first(self) -> dict[str, Any]:
        """The first finding on the overview."""
        findings_: list[dict[str, Any]] = self.slow("GET", _PATH).json["findings"]
        return findings_[0]

    def test_quiet(self) -> None:
        """A node whose jobs come, wait for a moment, go, and are done, has nothing to tell."""
        for _ in range(20):
            job = self.add()
            self.call(b"GETJOB", b"FROM", b"mail")
            self.call(b"ACKJOB", job.id)
        self.add(waited_s=5)
        self.assertEqual([], self.slow("GET", _PATH).json["findings"])

    def test_no_consumers(self) -> None:
        """1: nobody fetches the jobs of a queue; a note within 15 s, and a problem within
        minutes."""
        job = self.add(waited_s=12)
        one = self.first()
        shown = (one["severity"], one["what"])
        self.assertEqual(("note", "nobody fetches the 1 job of mail"), shown)
        job.moved_ms -= 60_000
        self.reactor.advance(5)
        self.assertEqual("problem", self.first()["severity"])

    def test_failing_after_a_deploy(self) -> None:
        """2: a task fails since it was deployed: which queue, how often, and with which error."""
        for _ in range(12):
            self.add()
        self.call(b"NOTE", b"deployed 4711")
        self.fail_deliveries(12, b"KeyError: 'to'")
        one = self.first()
        self.assertEqual("problem", one["severity"])
        self.assertEqual(
            "12 deliveries of mail failed: KeyError: 'to', in the last minute", one["what"]
        )
        self.assertEqual("#/queues/mail", one["link"])
        self.assertIsNotNone(one["since_s"])

    def test_poison(self) -> None:
        """3: one job fails again and again: which one, and where to look at it."""
        job = self.add()
        self.fail_deliveries(6, b"segfault")
        one = self.first()
        self.assertEqual(f"job {job.id.decode()} of mail has failed 6 times: segfault", one["what"])
        self.assertTrue(one["link"].startswith("#/jobs/D-"), one["link"])

    def test_node_down(self) -> None:
        """4: a node is down: which one."""
        lost = NodeEntry(b"b" * 40, b"10.0.0.2", 7711, FAIL, self.node.now_ms)
        self.node.membership.nodes[lost.id] = lost
        one = self.first()
        self.assertEqual(("problem", "10.0.0.2:7711"), (one["severity"], one["node"]))

    def test_memory(self) -> None:
        """8: memory at 95 %: at which node, and how full it is."""
        self.add()
        self.call(b"CONFIG", b"SET", b"maxmemory", b"%d" % (self.node.memory.used * 100 // 95 + 1))
        self.assertIn("uses 9", self.first()["what"])
        self.assertIn("% of maxmemory", self.first()["what"])

    def test_slow_consumer(self) -> None:
        """9: jobs wait much longer than they usually do, although somebody fetches them."""
        record = Record(b"mail")
        self.node.state.history.records.put(record)
        waits = Histogram()
        waits.add(900)
        quarter = int(self.node.wall_us) // 1_000_000 // 900
        self.node.state.history._slot = quarter * 90
        for ago in range(20, 4, -1):
            record.put((quarter - ago) * 90, [1, 1, 1, 0, *waits.counts()], [0, 0, 0, 0])
        self.add()
        self.call(b"GETJOB", b"FROM", b"mail")
        self.add(waited_s=30)
        one = self.first()
        self.assertIn("the first of the 1 job of mail has waited for 30 s; 99 % wait", one["what"])
        self.assertEqual("problem", one["severity"])

    def test_stuck_worker(self) -> None:
        """10: a worker holds jobs and says nothing: they come back because RETRY passes."""
        job = self.add(b"mail", b"RETRY", b"5")
        self.call(b"GETJOB", b"FROM", b"mail")
        with self.root.runtime.turn() as node_:
            job.qtime_ms = int(node_.now_ms) - 1
            node_.jobs.reschedule(job)
            node_.run_due()
        self.assertIn("1 delivery of mail was not acknowledged within RETRY", self.first()["what"])

    def test_paused_and_forgotten(self) -> None:
        """11: a queue is paused, and its jobs wait."""
        self.call(b"PAUSE", b"mail", b"out")
        self.add(waited_s=15)
        self.assertIn("mail is paused for deliveries, with 1 job in it", self.first()["what"])


class NodeIncidentTests(SynchronousTestCase):
    """Incidents that one real node alone cannot have, or that need a broken machine: by what nodes
    say of themselves. ``test_nodes`` has the details of each."""

    def first(self, **info: str) -> Finding:
        """The first finding about a node that says this of itself."""
        return found(node_view(1, node(2), **info), node_view(2, node(1)))[0]

    def test_disk_full(self) -> None:
        """5: the disk is full: the log cannot be written."""
        self.assertIn("cannot write its log", self.first(aof_last_write_status="err").what)

    def test_clock_step(self) -> None:
        """6: the clock of a node was set."""
        first, second = node_view(1, node(2)), node_view(2, node(1))
        one = found(attrs.evolve(first, clock_s=60.0), second)[0]
        self.assertIn("its clock is 60.0 s ahead", one.what)

    def test_schedule_missed(self) -> None:
        """7: occurrences of a schedule were missed."""
        self.assertIn("occurrences of schedules that were missed",
                      self.first(schedules_missed="1").what)  # fmt: skip

    def test_copies_lacking(self) -> None:
        """12: jobs have fewer copies than they were added with."""
        fields = {"jobs_lacking_copies": "3", "copies_obstacle": "no-node"}
        self.assertIn("fewer copies", self.first(**fields).what)

    def test_failures_of_all_nodes(self) -> None:
        """What fails at several nodes is one finding; a queue whose failures are told is not told
        again for its backoff."""
        one = FailureFacts("mail", 6, 0, 50.0, "down", "D-1", 3)
        both = one.with_others(FailureFacts("mail", 6, 1, 40.0, "", "D-2", 4))
        (finding,) = findings(Survey({}, {}, (), frozenset(), 100.0, (both,)))
        self.assertIn("12 deliveries of mail failed: down", finding.what)
        self.assertEqual((40.0, "D-2"), (finding.since_s, both.job_id))

    def test_failures_of_a_worker(self) -> None:
        """Who looks for a failure begins at the worker that has it, of whichever node; rows of
        nodes that do not name it, or have too little, are no fault."""
        rows: list[list[Any]] = [
            [b"mail", 6, 0, 50_000, b"down", b"D-1", 3],
            [b"mail", 5, 0, 50_000, b"down", b"D-2", 2, b"w/web1:4711"],
            [b"mail", 5],
        ]
        (one,) = merged_failures(rows, lambda name: name.removeprefix("w/"))
        (finding,) = findings(Survey({}, {}, (), frozenset(), 100.0, (one,)))
        self.assertIn("11 deliveries of mail failed: down (at worker web1:4711)", finding.what)

    def test_version_of_a_worker(self) -> None:
        """A failure after a deploy names the version that it began with; whatever else connections
        say of themselves is no fault."""
        one = FailureFacts("mail", 2, 0, 50.0, "down", "D-1", 3, "web1:4711")
        said = (b"", b"[" * 100_000, b"[1]", b'{"worker": ["web1:4711"], "version": "6"}',
                b'{"worker": "web1:4711", "version": "7.2"}', b'{"worker": "web2:1"}')  # fmt: skip
        rows = [[1, b"addr", b"name", 1, 0, text] for text in said]
        for worker, end in (("web1:4711", ", version 7.2)"), ("web2:1", "web2:1)")):
            known = with_versions((attrs.evolve(one, worker=worker),), [*rows, []])
            (finding,) = findings(Survey({}, {}, (), frozenset(), 100.0, known))
            self.assertIn(f"failed: down (at worker {worker}", finding.what)
            self.assertIn(end, finding.what)
