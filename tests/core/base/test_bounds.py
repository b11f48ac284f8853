"""How long names of queues and patterns may be, in every command that takes one."""

from __future__ import annotations

from disque_tx.commands.jobs.counting import qcount, qflush, qlist
from disque_tx.commands.jobs.getjob import getjob
from disque_tx.commands.jobs.jobs import addjob
from disque_tx.commands.jobs.queues import jscan, pause, qlen, qpeek, qscan, qstat
from disque_tx.commands.jobs.retries import qmove
from disque_tx.commands.tables.policies import qpolicy
from disque_tx.commands.tables.schedules import schedule
from disque_tx.core.base.bounds import GLOB_BYTES_MAX
from disque_tx.core.base.client import Client
from disque_tx.core.jobs.letters import letter_body
from disque_tx.messages.limits import QUEUE_BYTES_MAX
from tests.commands.jobs.test_jobs import JobsCase
from tests.core.bench import ME, make_job

LONGEST = b"q" * QUEUE_BYTES_MAX
TOO_LONG = LONGEST + b"q"
NAME = b"ERR Name of a queue longer than 1024 bytes"


class NameTests(JobsCase):
    """Names of queues."""

    def load(self, queue: bytes, *numbers: int) -> list[bytes]:
        """Jobs of this queue, queued, as the log or another node brings them."""
        jobs = [make_job(number, number, queue) for number in numbers]
        for job in jobs:
            job.expire_ms = self.node.now_ms + 86_400_000
            self.node.delivery.first_queueing(job)
            self.node.jobs.add(job)
        return [job.id for job in jobs]

    def test_longest(self) -> None:
        """The longest name works in full, with its policy and its dead letters."""
        self.call(
            qpolicy, b"QPOLICY", b"SET", LONGEST, b"max-deliveries", b"1", b"retry-delay", b"0"
        )
        job_id = self.add(LONGEST, b"body", b"0")
        self.get(LONGEST)
        self.node.enqueue([job_id], True)
        self.assertEqual(1, self.call(qlen, b"QLEN", (b"dead:" + LONGEST)[:QUEUE_BYTES_MAX]))

    def get(self, queue: bytes) -> Client:
        """The client that got a job of the queue, or nothing."""
        client = self.connect(b"x:1")
        self.node.get_jobs(client, [queue], 1, 0, True, False)
        return client

    def test_refused(self) -> None:
        """A name of a megabyte gets no jobs, and no memory, by any command."""
        self.add(b"q", b"b", b"0")
        for name in (TOO_LONG, b"n" * 1_048_576):
            self.assert_refused(NAME, addjob, b"ADDJOB", name, b"b", b"0")
            self.assert_refused(NAME, addjob, b"ADDJOB", name, b"b", b"0", b"UNIQUE", b"key")
            self.assert_refused(NAME, getjob, b"GETJOB", b"FROM", name)
            self.assert_refused(NAME, getjob, b"GETJOB", b"FROM", name, b"MATCH", b"*")
            self.assert_refused(NAME, pause, b"PAUSE", name, b"all", b"bcast")
            self.assert_refused(NAME, pause, b"PAUSE", name, b"state")
            self.assert_refused(NAME, qmove, b"QMOVE", b"q", name)
            self.assert_refused(NAME, qmove, b"QMOVE", b"empty", name)
            self.assert_refused(NAME, qpolicy, b"QPOLICY", b"GET", name)
            self.assert_refused(
                b"ERR Queue of a schedule longer than 1024 bytes",
                *(schedule, b"SCHEDULE", b"SET", b"s", b"EVERY", b"60", b"QUEUE", name, b"body"),
            )
            self.assertEqual(0, self.call(qlen, b"QLEN", name))
            self.assertEqual([], self.call(qpeek, b"QPEEK", name, b"1"))
            self.assertIsNone(self.call(qstat, b"QSTAT", name))
        self.assertEqual([b"q"], [queue.name for queue in self.node.queues.table.values()])

    def test_copies(self) -> None:
        """A queue with copies refuses a long name before it looks for its policy."""
        self.call(qpolicy, b"QPOLICY", b"SET", b"*", b"copy-to", b"other")
        self.assert_refused(NAME, addjob, b"ADDJOB", TOO_LONG, b"b", b"0")

    def test_of_others(self) -> None:
        """Jobs of an original with a longer name are seen, delivered, paused, and can be moved to
        where new ones are."""
        first, second = self.load(TOO_LONG, 101, 102)
        self.assertEqual(2, self.call(qlen, b"QLEN", TOO_LONG))
        self.assertEqual([b"0", [TOO_LONG]], self.call(qscan, b"QSCAN"))
        self.assertEqual([], self.call(qpolicy, b"QPOLICY", b"GET", TOO_LONG))
        self.call(pause, b"PAUSE", TOO_LONG, b"in")
        reply = self.call(getjob, b"GETJOB", b"FROM", TOO_LONG)
        self.assertEqual([[TOO_LONG, first, b"body"]], reply)
        self.assert_refused(NAME, addjob, b"ADDJOB", TOO_LONG, b"b", b"0")
        self.assertEqual(1, self.call(qmove, b"QMOVE", TOO_LONG, b"short"))
        self.assertIsNone(self.node.jobs.get(second))
        self.assertEqual(1, self.call(qlen, b"QLEN", b"short"))

    def test_letters(self) -> None:
        """A dead letter of such a queue stays where it is, and keeps no other from being moved."""
        for queue in (TOO_LONG, b"q"):
            letter = letter_body(make_job(101, 1, queue), b"failed", ME, True, self.node.wall_us)
            self.add(b"dead", letter, b"0")
        self.assertEqual(1, self.call(qmove, b"QMOVE", b"dead", b"*", b"DEAD"))
        self.assertEqual(1, self.call(qlen, b"QLEN", b"q"))
        self.assertEqual(1, self.call(qlen, b"QLEN", b"dead"))

    def test_counts(self) -> None:
        """Counting and flushing a queue that cannot be finds nothing."""
        for handler, name in ((qcount, b"QCOUNT"), (qflush, b"QFLUSH")):
            self.answers(handler, name, TOO_LONG)
        self.assertEqual(0, len(self.node.queues))


class PatternTests(JobsCase):
    """Patterns, and names that stand in their place."""

    def refused(self, text: bytes, pattern: bytes) -> None:
        """Every command refuses the pattern with this text."""
        self.assert_refused(b"ERR Pattern" + text, getjob, b"GETJOB", b"MATCH", pattern)
        words = (b"GETJOB", b"EXCEPT", pattern, b"MATCH", b"*")
        self.assert_refused(b"ERR Pattern" + text, getjob, *words)
        self.assert_refused(b"ERR MATCH pattern" + text, qlist, b"QLIST", b"MATCH", pattern)
        self.assert_refused(b"ERR REASON" + text, jscan, b"JSCAN", b"REASON", pattern)
        words = (b"QPOLICY", b"SET", pattern, b"ttl", b"1")
        self.assert_refused(b"ERR Policy pattern" + text, qpolicy, *words)

    def test_refused(self) -> None:
        """Long patterns are refused by name, and names that no queue can have."""
        self.refused(b" longer than 256 bytes", b"x" * GLOB_BYTES_MAX + b"*")
        self.refused(b" longer than 1024 bytes", TOO_LONG)

    def test_taken(self) -> None:
        """A pattern of the greatest length is taken, and the name of any queue."""
        for pattern in (b"x" * (GLOB_BYTES_MAX - 1) + b"*", LONGEST):
            self.assertEqual(b"OK", self.set_ttl(pattern, b"1"))
            self.call(jscan, b"JSCAN", b"REASON", pattern)

    def set_ttl(self, pattern: bytes, value: bytes) -> bytes:
        """The reply to QPOLICY SET."""
        reply = self.call(qpolicy, b"QPOLICY", b"SET", pattern, b"ttl", value)
        return getattr(reply, "text", b"")

    def test_older_policies(self) -> None:
        """A longer pattern that the table has from before stays in force, and can be changed."""
        pattern = b"x" * 500 + b"*"
        self.node.policies.set(pattern, b"ttl", b"9")
        self.assertEqual(b"OK", self.set_ttl(pattern, b"8"))
        self.assertEqual((b"8", pattern), self.node.policies.sources(b"x" * 501)[b"ttl"])
