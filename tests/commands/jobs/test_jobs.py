"""Commands on jobs (client protocol, sections 14 to 17)."""

from __future__ import annotations

from disque_tx.commands.base.values import Status
from disque_tx.commands.jobs.getjob import getjob
from disque_tx.commands.jobs.jobs import (
    ackjob,
    addjob,
    deljob,
    dequeue,
    enqueue,
    fastack,
    show,
)
from disque_tx.commands.jobs.progress import working
from disque_tx.commands.jobs.retries import nack
from disque_tx.core.base.client import BLOCKED_ADDJOB, BLOCKED_GETJOB, NOT_BLOCKED
from disque_tx.messages.bustypes import TYPE_NAMES
from disque_tx.messages.nodes import Link, NodeEntry
from tests.commands.desk import DeskCase
from tests.core.peerbench import B, SentMessages

HUGE = (1 << 63, 1 << 64, -(1 << 63) - 1, 10**30)
EDGES = ((1 << 63) - 1, -(1 << 63), *HUGE)
UNKNOWN = b"D-a267464b-WepcnCEsLGzTE3WERFhKyqDG-05a1"
BAD_ID = b"BADID Invalid Job ID format."
SYNTAX = b"ERR syntax error"


class JobsCase(DeskCase):
    """Adds and gets jobs by command."""

    def add(self, *words: bytes) -> bytes:
        """ADDJOB; the ID."""
        reply = self.call(addjob, b"ADDJOB", *words)
        assert isinstance(reply, Status), reply
        return reply.text

    def join(self, node_id: bytes) -> SentMessages:
        """Another node with a link; the messages sent to it."""
        sink = SentMessages()
        entry = NodeEntry(node_id, b"10.0.0.2", 7711, 0, self.node.now_ms)
        entry.link = Link(sink, entry, entry.ip, b"10.0.0.1", self.node.now_ms, 1)
        self.membership.add(entry)
        return sink

    def assert_add_refused(self, line: bytes, *options: bytes) -> None:
        """ADDJOB with these options gets this error, and nothing is stored."""
        before = len(self.node.jobs)
        self.assert_refused(line, addjob, b"ADDJOB", b"q", b"b", b"0", *options)
        self.assertEqual(before, len(self.node.jobs), options)


class AddJobTests(JobsCase):
    """ADDJOB."""

    def test_options(self) -> None:
        """Options are accepted in any order and case; of two equal ones the last wins."""
        words = b"retry 1 TTL 50 Delay 3 REPLICATE 1 MAXLEN 9 ASYNC TTL 60 RETRY 5".split()
        job = self.node.jobs.get(self.add(b"q", b"b", b"100", *words))
        assert job is not None
        self.assertEqual((5, 3, 1), (job.retry_s, job.delay_s, job.repl))
        self.assertEqual(self.node.now_ms + 60_000, job.expire_ms)

    def test_same_with_and_without_options(self) -> None:
        """The short form and the explicit defaults make the same job."""
        ids = [
            self.add(b"q", b"b", b"0"),
            self.add(b"q", b"b", b"0", *b"REPLICATE 1 TTL 86400 RETRY 300 DELAY 0".split()),
        ]
        first, second = (self.node.jobs.get(job_id) for job_id in ids)
        assert first is not None and second is not None
        for name in ("etime_s", "retry_s", "delay_s", "repl", "state", "flags", "qtime_ms"):
            self.assertEqual(getattr(first, name), getattr(second, name), name)

    def test_ranges(self) -> None:
        """Every option has its range and its own error: nothing overflows."""
        uint32 = 4_294_967_295
        for option, text, bad, good in (
            (b"REPLICATE", b"REPLICATE must be between 1 and 65535", (0, -1, 65_536), (1,)),
            (b"TTL", b"TTL must be a number > 0", (0, -1, uint32 + 1), (1, 1 << 31)),
            (
                b"RETRY",
                b"RETRY time must be a non negative number",
                (-1, uint32 + 1),
                (0, uint32),
            ),
            (
                b"DELAY",
                b"DELAY time must be a non negative number",
                (-1, uint32 + 1, (1 << 63) - 1),
                (0, 86_399),
            ),
            (b"MAXLEN", b"MAXLEN must be a positive number", (0, -1), (100, (1 << 63) - 1)),
        ):
            for number in (*bad, *HUGE, -(1 << 63)):
                self.assert_add_refused(b"ERR " + text, option, b"%d" % number)
            for word in (b"", b"x", b"1x", b"1.5"):
                self.assert_add_refused(b"ERR " + text, option, word)
            for number in good:
                self.add(b"q", b"b", b"0", option, b"%d" % number)

    def test_syntax(self) -> None:
        """Unknown words and options without their value are syntax errors."""
        unfinished = ((b"TTL",), (b"ASYNC", b"RETRY"), (b"UNIQUE", b"k", b"FOR"), (b"UNIQUE",))
        for options in ((b"WHAT",), (b"TTL", b"5", b"x"), *unfinished):
            self.assert_add_refused(SYNTAX, *options)

    def test_first_error_wins(self) -> None:
        """Options are checked from left to right, and all before the timeout."""
        self.assert_add_refused(b"ERR TTL must be a number > 0", b"TTL", b"0", b"RETRY", b"-1")
        self.assert_add_refused(SYNTAX, b"WHAT", b"TTL", b"0")
        line = b"ERR TTL must be a number > 0"
        self.assert_refused(line, addjob, b"ADDJOB", b"q", b"b", b"-1", b"TTL", b"0")

    def test_timeout(self) -> None:
        """The timeout is checked with and without options, at every boundary."""
        for options in ((), (b"RETRY", b"5")):
            for word, line in (
                (b"-1", b"ERR timeout is negative"),
                (b"-9223372036854775808", b"ERR timeout is negative"),
                (b"x", b"ERR timeout is not an integer or out of range"),
                (b"9223372036854775808", b"ERR timeout is not an integer or out of range"),
                (b"18446744073709551616", b"ERR timeout is not an integer or out of range"),
            ):
                self.assert_refused(line, addjob, b"ADDJOB", b"q", b"b", word, *options)
            self.add(b"q", b"b", b"9223372036854775807", *options)


class CopiesTests(JobsCase):
    """ADDJOB in a cluster."""

    WORDS = (b"q", b"b", b"100", b"REPLICATE", b"2")

    def test_waits(self) -> None:
        """Without ASYNC the client gets its reply when the copy is confirmed, or at the timeout."""
        sink = self.join(B)
        self.assertEqual([], self.answers(addjob, b"ADDJOB", *self.WORDS))
        self.assertEqual(BLOCKED_ADDJOB, self.client.blocked)
        self.assertEqual(["REPLJOB"], [TYPE_NAMES[message.type] for message in sink.messages])
        self.node.begin(self.node.now_ms + 100, self.node.wall_us)
        self.node.run_due()
        self.assertEqual(NOT_BLOCKED, self.client.blocked)

    def test_async(self) -> None:
        """With ASYNC the ID is returned at once, whatever the option's case and place."""
        self.join(B)
        for words in ((*self.WORDS, b"async"), (*self.WORDS[:3], b"ASYNC", *self.WORDS[3:])):
            reply = self.call(addjob, b"ADDJOB", *words)
            assert isinstance(reply, Status)
            job = self.node.jobs.get(reply.text)
            assert job is not None
            self.assertEqual((b"a" * 40, B), job.nodes)

    def test_fast(self) -> None:
        """FASTACK counts known jobs, and sends DELJOB for unknown ones to all nodes."""
        sink = self.join(B)
        job_id = self.add(b"q", b"b", b"0", b"REPLICATE", b"1")
        self.assertEqual(1, self.call(fastack, b"FASTACK", job_id, UNKNOWN))
        self.assertEqual(["DELJOB"], [TYPE_NAMES[message.type] for message in sink.messages])

    def test_only_here(self) -> None:
        """DELJOB counts known jobs, and sends nothing to other nodes."""
        sink = self.join(B)
        job_id = self.add(b"q", b"b", b"0", b"REPLICATE", b"2", b"ASYNC")
        sink.messages.clear()
        self.assertEqual(1, self.call(deljob, b"DELJOB", job_id, UNKNOWN))
        self.assertEqual([], sink.messages)
        for handler in (fastack, deljob):
            self.assert_refused(BAD_ID, handler, b"X", UNKNOWN, b"nonsense")


class GetJobTests(JobsCase):
    """GETJOB."""

    def get(self, *words: bytes) -> object:
        return self.call(getjob, b"GETJOB", *words)

    def test_reply(self) -> None:
        """A job is queue, ID and body; with WITHCOUNTERS also its named counters."""
        first, second = self.add(b"q", b"one", b"0"), self.add(b"q", b"two", b"0")
        self.assertEqual([[b"q", first, b"one"]], self.get(b"FROM", b"q"))
        self.assertEqual(
            [[b"q", second, b"two", b"nacks", 0, b"additional-deliveries", 0]],
            self.get(b"withcounters", b"timeout", b"5", b"from", b"q"),
        )
        self.assertIsNone(self.get(b"NOHANG", b"FROM", b"q"))

    def test_everything_behind_from_is_a_name(self) -> None:
        """Everything after FROM is a queue name, even if it looks like an option."""
        self.add(b"COUNT", b"b", b"0")
        reply = self.get(b"NOHANG", b"FROM", b"NOHANG", b"COUNT")
        assert isinstance(reply, list)
        self.assertEqual(b"COUNT", reply[0][0])

    def test_syntax(self) -> None:
        """Unknown options, options without value, no FROM and no queue are syntax errors."""
        for words in (
            (b"q",),
            (b"FROM",),
            (b"NOHANG",),
            (b"COUNT",),
            (b"TIMEOUT",),
            (b"COUNT", b"5"),
            (b"NOHANG", b"FROM"),
            (b"WHAT", b"FROM", b"q"),
        ):
            self.assert_refused(SYNTAX, getjob, b"GETJOB", *words)

    def test_count(self) -> None:
        """COUNT is a positive number up to the largest 64-bit one."""
        line = b"ERR COUNT must be a number greater than zero"
        for word in [b"0", b"-1", b"x", b""] + [b"%d" % number for number in EDGES[1:]]:
            self.assert_refused(line, getjob, b"GETJOB", b"COUNT", word, b"FROM", b"q")
        ids = [self.add(b"q", b"b", b"0") for _ in range(3)]
        reply = self.get(b"COUNT", b"%d" % EDGES[0], b"FROM", b"q")
        self.assertEqual([[b"q", job_id, b"b"] for job_id in ids], reply)

    def test_timeout(self) -> None:
        """TIMEOUT is checked like every timeout; the largest one waits indefinitely."""
        for word, line in (
            (b"-1", b"ERR timeout is negative"),
            (b"%d" % EDGES[1], b"ERR timeout is negative"),
            (b"x", b"ERR timeout is not an integer or out of range"),
            (b"%d" % HUGE[0], b"ERR timeout is not an integer or out of range"),
            (b"%d" % HUGE[1], b"ERR timeout is not an integer or out of range"),
        ):
            self.assert_refused(line, getjob, b"GETJOB", b"TIMEOUT", word, b"FROM", b"q")
        words = (b"GETJOB", b"TIMEOUT", b"%d" % EDGES[0], b"FROM", b"q")
        self.assertEqual([], self.answers(getjob, *words))
        self.assertEqual(BLOCKED_GETJOB, self.client.blocked)
        self.assertEqual(-1, self.node.next_due_ms())


class ChangeTests(JobsCase):
    """Commands that take job IDs."""

    def test_bad_id(self) -> None:
        """One invalid ID refuses the whole request, and nothing is done."""
        job_id = self.add(b"q", b"b", b"0")
        for handler in (ackjob, enqueue, nack, dequeue):
            self.assert_refused(BAD_ID, handler, b"X", job_id, b"nonsense")
        for handler in (working, show):
            self.assert_refused(BAD_ID, handler, b"X", b"nonsense")
        self.assertEqual(1, len(self.node.jobs))

    def test_none(self) -> None:
        """Without IDs the reply is zero."""
        for handler in (ackjob, enqueue, nack, dequeue):
            self.assertEqual(0, self.call(handler, b"X"))

    def test_counts(self) -> None:
        """The reply is the number of jobs that changed."""
        job_id = self.add(b"q", b"b", b"0")
        for handler, expected in (
            (enqueue, 0),
            (dequeue, 1),
            (dequeue, 0),
            (nack, 1),
            (ackjob, 1),
            (ackjob, 0),
        ):
            self.assertEqual(expected, self.call(handler, b"X", job_id, job_id, UNKNOWN))

    def test_working(self) -> None:
        """WORKING replies with RETRY, or that the job is unknown."""
        job_id = self.add(b"q", b"b", b"0", b"RETRY", b"7")
        self.assertEqual(7, self.call(working, b"WORKING", job_id))
        line = b"NOJOB Job not known in the context of this node."
        self.assert_refused(line, working, b"WORKING", UNKNOWN)


class GetMatchTests(JobsCase):
    """GETJOB with MATCH and EXCEPT."""

    def get(self, *words: bytes) -> object:
        return self.call(getjob, b"GETJOB", *words)

    def queues(self, *words: bytes) -> list[bytes]:
        """The queues of the jobs that come at once."""
        reply = self.get(b"NOHANG", *words)
        return [job[0] for job in reply] if isinstance(reply, list) else []

    def test_forms(self) -> None:
        """Every form takes from the queues that it says."""
        for words, expected in (
            ((b"match", b"mail:*"), [b"mail:a", b"mail:b"]),
            ((b"except", b"*:b", b"MATCH", b"mail:*"), [b"mail:a"]),
            ((b"EXCEPT", b"*a", b"EXCEPT", b"*b", b"MATCH", b"*"), [b"sms"]),
            ((b"MATCH", b"sms", b"mail:b"), [b"mail:b", b"sms"]),
            ((b"FROM", b"sms", b"none", b"MATCH", b"mail:a"), [b"mail:a", b"sms"]),
            ((b"EXCEPT", b"mail:*", b"FROM", b"mail:a", b"MATCH", b"*"), [b"mail:a", b"sms"]),
        ):
            ids = [self.add(name, b"x", b"0") for name in (b"mail:a", b"mail:b", b"sms")]
            self.assertEqual(expected, sorted(self.queues(b"COUNT", b"9", *words)), words)
            self.node.delete(ids)

    def test_reply(self) -> None:
        """The reply has the form of any GETJOB, counters included."""
        job_id = self.add(b"a", b"x", b"0")
        expected = [[b"a", job_id, b"x", b"nacks", 0, b"additional-deliveries", 0]]
        self.assertEqual(expected, self.get(b"WITHCOUNTERS", b"MATCH", b"*"))
        self.assertIsNone(self.get(b"NOHANG", b"MATCH", b"*"))

    def test_queues_called_match(self) -> None:
        """A queue of this name is still taken from, wherever the word cannot mean anything else."""
        for name, words in (
            (b"MATCH", [b"MATCH"]),
            (b"MATCH", [b"MATCH", b"other"]),
            (b"MATCH", [b"other", b"MATCH"]),
            (b"match", [b"a", b"match", b"b"]),
        ):
            self.add(name, b"x", b"0")
            self.assertEqual([name], self.queues(b"FROM", *words))

    def test_syntax(self) -> None:
        """What is no request is refused, and nobody waits for it."""
        for words in (
            (b"MATCH",),
            (b"EXCEPT", b"a"),
            (b"EXCEPT", b"a", b"MATCH"),
            (b"EXCEPT",),
            (b"COUNT", b"5", b"MATCH"),
            (b"a", b"MATCH", b"*"),
        ):
            self.assert_refused(SYNTAX, getjob, b"GETJOB", *words)
        line = b"ERR EXCEPT needs MATCH"
        self.assert_refused(line, getjob, b"GETJOB", b"EXCEPT", b"a", b"FROM", b"q")
        line = b"ERR FROM must stand before MATCH"
        self.assert_refused(line, getjob, b"GETJOB", b"MATCH", b"a*", b"FROM", b"q")

    def test_bounds(self) -> None:
        """A megabyte of pattern, and very many of them, are refused by name."""
        line = b"ERR Pattern longer than 256 bytes"
        self.assert_refused(line, getjob, b"GETJOB", b"MATCH", b"*" * 1_048_576)
        line = b"ERR More than 100 patterns in one GETJOB"
        self.assert_refused(line, getjob, b"GETJOB", b"MATCH", *[b"*"] * 101)
        self.assert_refused(line, getjob, b"GETJOB", *[b"EXCEPT", b"x"] * 101, b"MATCH", b"*")
        line = b"ERR COUNT must be a number greater than zero"
        self.assert_refused(line, getjob, b"GETJOB", b"COUNT", b"0", b"MATCH", b"*")
