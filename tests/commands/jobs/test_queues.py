"""Commands on queues, and the scans (client protocol, sections 18 and 19)."""

from __future__ import annotations

from itertools import product

from disque_tx.commands.base.context import Handler
from disque_tx.commands.base.values import Status
from disque_tx.commands.jobs.getjob import getjob
from disque_tx.commands.jobs.queues import jscan, pause, qlen, qpeek, qscan, qstat
from disque_tx.core.jobs.letters import letter_body
from disque_tx.core.queues.demand import QueueDemand
from disque_tx.messages.bus import QueueSignal
from tests.commands.jobs.test_jobs import EDGES, HUGE, SYNTAX, JobsCase
from tests.core.bench import ME, make_job
from tests.core.peerbench import B

NOT_INTEGER = b"ERR value is not an integer or out of range"


class LookTests(JobsCase):
    """QLEN, QPEEK, QSTAT."""

    def test_qlen(self) -> None:
        """Queued jobs are counted; delayed ones are not, and missing queues have none."""
        self.assertEqual(0, self.call(qlen, b"QLEN", b"q"))
        self.add(b"q", b"b", b"0")
        self.add(b"q", b"b", b"0", b"DELAY", b"5")
        self.call(pause, b"PAUSE", b"q", b"all")
        self.assertEqual(1, self.call(qlen, b"QLEN", b"q"))

    def test_qpeek(self) -> None:
        """Positive counts show the oldest, negative ones the newest first; nothing is removed."""
        items = [[b"q", self.add(b"q", b"%d" % n, b"0"), b"%d" % n] for n in range(4)]
        for count, expected in (
            (b"2", items[:2]),
            (b"-3", items[:0:-1]),
            (b"0", []),
            (b"9223372036854775807", items),
            (b"-9223372036854775808", items[::-1]),
        ):
            self.assertEqual(expected, self.call(qpeek, b"QPEEK", b"q", count), count)
        self.assertEqual([], self.call(qpeek, b"QPEEK", b"missing", b"1"))
        self.assertEqual(4, self.call(qlen, b"QLEN", b"q"))
        for number in HUGE:
            self.assert_refused(NOT_INTEGER, qpeek, b"QPEEK", b"q", b"%d" % number)

    def test_qstat(self) -> None:
        """The twenty elements are those of the original, in its order; WITHPAUSE adds who paused
        the queue, and when."""
        self.assertIsNone(self.call(qstat, b"QSTAT", b"q"))
        self.add(b"q", b"b", b"0")
        self.add(b"q", b"b", b"0")
        self.call(getjob, b"GETJOB", b"FROM", b"q")
        self.node.begin(self.node.now_ms + 7_300, self.node.wall_us)
        self.call(pause, b"PAUSE", b"q", b"out")
        blocked = self.connect(b"127.0.0.1:5002")
        self.node.get_jobs(blocked, [b"q"], 1, 0, False, False)
        expected = [b"name", b"q", b"len", 1, b"age", 7, b"idle", 7, b"blocked", 1]
        expected += [b"import-from", [], b"import-rate", 0]
        expected += [b"jobs-in", 2, b"jobs-out", 1, b"pause", b"out"]
        at_s = self.node.wall_us // 1_000_000
        self.assertEqual(expected, self.call(qstat, b"QSTAT", b"q"))
        told = self.call(qstat, b"QSTAT", b"q", b"WITHPAUSE")
        who = [b"paused-by", self.client.addr, b"paused-at", at_s]
        self.assertEqual([*expected, *who], told)
        self.call(pause, b"PAUSE", b"q", b"none")
        told = self.call(qstat, b"QSTAT", b"q", b"WITHPAUSE")
        nobody = [b"none", b"paused-by", b"", b"paused-at", 0]
        self.assertEqual([*expected[:-1], *nobody], told)


class FederationTests(JobsCase):
    """What commands show and change about the exchange of jobs with other nodes."""

    def test_imports(self) -> None:
        """For five seconds QSTAT names the nodes that sent jobs, and how many arrive per second."""
        queue = self.node.queues.obtain(b"q", self.node.now_ms)
        self.node.queues.obtain(b"r", self.node.now_ms)
        queue.imports = QueueDemand(self.node.now_ms)
        for _ in range(10):
            queue.imports.note(B, self.node.now_ms)
        for after_ms, givers, rate in ((1_000, [B], 10), (4_001, [], 0)):
            self.node.begin(self.node.now_ms + after_ms, self.node.wall_us)
            answer = self.call(qstat, b"QSTAT", b"q")
            assert isinstance(answer, list)
            self.assertEqual([b"import-from", givers, b"import-rate", rate], answer[10:14])

    def test_import_rate(self) -> None:
        """QSCAN IMPORTRATE finds the queues that import at least that many jobs per second."""
        for name, jobs in ((b"slow", 1), (b"fast", 100), (b"none", 0)):
            queue = self.node.queues.obtain(name, self.node.now_ms)
            queue.imports = QueueDemand(self.node.now_ms)
            for _ in range(jobs):
                queue.imports.note(B, self.node.now_ms)
        self.node.begin(self.node.now_ms + 1_000, self.node.wall_us)
        for rate, names in ((b"1", [b"fast", b"slow"]), (b"2", [b"fast"]), (b"101", [])):
            answer = self.call(qscan, b"QSCAN", b"BUSYLOOP", b"IMPORTRATE", rate)
            assert isinstance(answer, list) and isinstance(answer[1], list)
            self.assertEqual(names, sorted(answer[1], key=repr))

    def test_pause_everywhere(self) -> None:
        """PAUSE ... bcast sends the resulting state to the other nodes, and only bcast does."""
        sink = self.join(B)
        for words in ((b"in",), (b"state",)):
            self.call(pause, b"PAUSE", b"q", *words)
        self.assertEqual([], sink.messages)
        self.call(pause, b"PAUSE", b"q", b"out", b"bcast")
        self.call(pause, b"PAUSE", b"q", b"none", b"bcast")
        sent = [m for m in sink.messages if isinstance(m, QueueSignal)]
        self.assertEqual([(b"q", 2), (b"q", 0)], [(m.queue, m.aux) for m in sent])

    def test_pause_everywhere_as_here(self) -> None:
        """Whatever the options, the other nodes are sent the state that this node now has:
        otherwise another one would deliver what was paused here."""
        sink = self.join(B)
        words = (b"in", b"out", b"all", b"none", b"state")
        orders = [order for length in range(4) for order in product(words, repeat=length)]
        for before, order in product(range(4), orders):
            for at in range(len(order) + 1):
                self.node.pause(b"q", before)
                sink.messages.clear()
                self.call(pause, b"PAUSE", b"q", *order[:at], b"bcast", *order[at:])
                queue = self.node.queues.get(b"q")
                here = 0 if queue is None else queue.paused
                sent = [m.aux for m in sink.messages if isinstance(m, QueueSignal)]
                self.assertEqual([here], sent, (before, order))


class PauseTests(JobsCase):
    """PAUSE."""

    def test_states(self) -> None:
        """The options build a new set of flags, which replaces the old one."""
        for words, state in (
            (b"in", b"in"),
            (b"out", b"out"),
            (b"IN out", b"all"),
            (b"state", b"all"),
            (b"bcast", b"all"),
            (b"none in", b"in"),
            (b"all none", b"none"),
            (b"all state bcast", b"all"),
            (b"none", b"none"),
        ):
            reply = self.call(pause, b"PAUSE", b"q", *words.split())
            self.assertEqual(Status(state), reply, words)

    def test_wrong_word(self) -> None:
        """One wrong option refuses the whole request."""
        self.assert_refused(SYNTAX, pause, b"PAUSE", b"q", b"all", b"what")
        self.assertIsNone(self.node.queues.get(b"q"))

    def test_missing_queue(self) -> None:
        """Only a pause creates a queue."""
        for word in (b"state", b"none", b"bcast"):
            self.assertEqual(Status(b"none"), self.call(pause, b"PAUSE", b"q", word))
            self.assertIsNone(self.node.queues.get(b"q"))
        self.call(pause, b"PAUSE", b"q", b"in")
        self.assertIsNotNone(self.node.queues.get(b"q"))


class ScanCase(JobsCase):
    """Runs whole scans."""

    def step(self, handler: Handler, *words: bytes) -> tuple[bytes, list[object]]:
        reply = self.call(handler, b"SCAN", *words)
        assert isinstance(reply, list)
        cursor, items = reply
        assert isinstance(cursor, bytes) and isinstance(items, list)
        return cursor, list(items)

    def all(self, handler: Handler, *words: bytes) -> list[object]:
        """All elements, over as many steps as necessary."""
        items: list[object] = []
        cursor = b"0"
        while True:
            cursor, some = self.step(handler, cursor, *words)
            items += some
            if cursor == b"0":
                return items

    def assert_common(self, handler: Handler, numeric: tuple[bytes, ...]) -> None:
        """The errors that both scans share."""
        line = b"ERR invalid cursor or option name"
        for word in (b"x", b"1x", b"18446744073709551616", b"COUNT"):
            self.assert_refused(line, handler, b"SCAN", word)
        self.assert_refused(SYNTAX, handler, b"SCAN", b"0", b"0")
        self.assert_refused(SYNTAX, handler, b"SCAN", b"0", b"WHAT")
        for name in numeric:
            for word in [b"x", b""] + [b"%d" % number for number in HUGE]:
                self.assert_refused(NOT_INTEGER, handler, b"SCAN", b"0", name, word)
            for number in EDGES[:2]:
                self.step(handler, b"0", name, b"%d" % number)


class QscanTests(ScanCase):
    """QSCAN."""

    def test_one_queue(self) -> None:
        """The example of section 25: one queue, one step."""
        self.add(b"q", b"b", b"0")
        self.assertEqual((b"0", [b"q"]), self.step(qscan))

    def test_many(self) -> None:
        """Every queue is listed once, COUNT limits a step, BUSYLOOP needs one."""
        names = [b"q%d" % number for number in range(500)]
        for name in names:
            self.node.queues.obtain(name, self.node.now_ms)
        self.assertEqual(sorted(names), sorted(self.all(qscan), key=repr))
        cursor, some = self.step(qscan, b"COUNT", b"10")
        self.assertNotEqual(b"0", cursor)
        self.assertTrue(10 <= len(some) < 250)
        cursor, some = self.step(qscan, b"COUNT", b"0")
        self.assertNotEqual(b"0", cursor)
        self.assertLess(len(some), 250)
        for words in ((b"busyloop",), (b"COUNT", b"-1"), (b"COUNT", b"%d" % EDGES[0])):
            cursor, some = self.step(qscan, *words)
            self.assertEqual((b"0", 500), (cursor, len(some)))

    def test_nothing_found(self) -> None:
        """A step that finds nothing ends as well, and does not look through all queues while
        others wait."""
        for number in range(5_000):
            self.node.queues.obtain(b"q%d" % number, self.node.now_ms)
        cursor, some = self.step(qscan, b"COUNT", b"1", b"MINLEN", b"1")
        self.assertEqual((True, []), (cursor != b"0", some))
        cursor, some = self.step(qscan, b"BUSYLOOP", b"COUNT", b"1", b"MINLEN", b"1")
        self.assertEqual((b"0", []), (cursor, some))

    def test_filters(self) -> None:
        """MINLEN and MAXLEN are inclusive, -1 means no limit; nothing is imported on a single
        node."""
        for name, size in ((b"none", 0), (b"one", 1), (b"three", 3)):
            self.node.queues.obtain(name, self.node.now_ms)
            for _ in range(size):
                self.add(name, b"b", b"0")
        for words, expected in (
            (b"MINLEN 1", {b"one", b"three"}),
            (b"MAXLEN 1", {b"none", b"one"}),
            (b"MINLEN 1 MAXLEN 1", {b"one"}),
            (b"MINLEN -1 MAXLEN -1 IMPORTRATE -1", {b"none", b"one", b"three"}),
            (b"IMPORTRATE 1", set()),
            (b"MINLEN 9 MINLEN 3", {b"three"}),
            (b"MINLEN 9223372036854775807", set()),
            (b"MAXLEN -9223372036854775808", set()),
        ):
            self.assertEqual(expected, set(self.all(qscan, *words.split())), words)

    def test_refused(self) -> None:
        """Cursors and numbers are checked."""
        self.assert_common(qscan, (b"COUNT", b"MINLEN", b"MAXLEN", b"IMPORTRATE"))


class JscanTests(ScanCase):
    """JSCAN."""

    def test_ids(self) -> None:
        """IDs are status replies; every job is listed once."""
        ids = [self.add(b"q", b"b", b"0") for _ in range(300)]
        found = self.all(jscan, b"COUNT", b"20")
        texts = [item.text for item in found if isinstance(item, Status)]
        self.assertEqual(sorted(ids), sorted(texts))
        self.assertEqual(300, len(found))

    def test_filters(self) -> None:
        """QUEUE and STATE filter; several states are alternatives."""
        queued = self.add(b"q", b"b", b"0")
        delayed = self.add(b"q", b"b", b"0", b"DELAY", b"5")
        other = self.add(b"r", b"b", b"0")
        for words, ids in (
            (b"QUEUE q", {queued, delayed}),
            (b"QUEUE q STATE queued", {queued}),
            (b"state ACTIVE", {delayed}),
            (b"STATE active STATE queued", {queued, delayed, other}),
            (b"STATE acked", set()),
            (b"QUEUE missing", set()),
        ):
            found = self.all(jscan, *words.split())
            self.assertEqual({Status(job_id) for job_id in ids}, set(found), words)

    def test_reply_all(self) -> None:
        """REPLY ALL shows each job as SHOW does; REPLY ID is the default."""
        job_id = self.add(b"q", b"b", b"0")
        _, items = self.step(jscan, b"REPLY", b"all")
        assert isinstance(items[0], list)
        self.assertEqual((30, job_id), (len(items[0]), items[0][1]))
        self.assertEqual((b"0", [Status(job_id)]), self.step(jscan, b"reply", b"ID"))

    def test_large_jobs(self) -> None:
        """What one answer describes is bounded; the cursor leads to all others, also from a busy
        loop, so that no client takes the memory of a node."""
        ids = {self.add(b"q", b"b" * 1_048_576, b"0") for _ in range(40)}
        for words in ((b"COUNT", b"100"), (b"BUSYLOOP",), (b"COUNT", b"-1")):
            cursor, some = self.step(jscan, *words, b"REPLY", b"all")
            self.assertNotEqual(b"0", cursor)
            self.assertTrue(8 <= len(some) <= 16, len(some))
        found = self.all(jscan, b"COUNT", b"100", b"REPLY", b"all")
        self.assertEqual(ids, {item[1] for item in found if isinstance(item, list)})

    def test_letters_in_parts(self) -> None:
        """A look for a reason reads so many letters at a time, and finds all of them."""
        letter = letter_body(make_job(1), b"timeout " * 1_000, ME, True, 0)
        ids = {Status(self.add(b"dead:q", letter, b"0")) for _ in range(100)}
        cursor, some = self.step(jscan, b"COUNT", b"1000", b"REASON", b"timeout*")
        self.assertNotEqual(b"0", cursor)
        self.assertLess(len(some), 90)
        self.assertEqual(ids, set(self.all(jscan, b"COUNT", b"1000", b"REASON", b"timeout*")))

    def test_dummies_are_hidden(self) -> None:
        """Records of acknowledgements without a job are not listed; a job without nodes is."""
        first, second = self.add(b"q", b"b", b"0"), self.add(b"q", b"b", b"0")
        for job_id, dummy in ((first, True), (second, False)):
            job = self.node.jobs.get(job_id)
            assert job is not None
            job.nodes = ()
            job.dummy = dummy
        self.assertEqual([Status(second)], self.all(jscan))

    def test_refused(self) -> None:
        """Cursors, numbers, states and kinds of reply are checked from left to right."""
        self.assert_common(jscan, (b"COUNT",))
        self.assert_refused(b"ERR Invalid job state name", jscan, b"JSCAN", b"STATE", b"x")
        line = b"ERR Invalid REPLY type, try ID or ALL"
        self.assert_refused(line, jscan, b"JSCAN", b"REPLY", b"x", b"STATE", b"x")


class CreationTests(ScanCase):
    """JSCAN by the time of creation, and by why jobs came back."""

    def test_since_until(self) -> None:
        """The jobs of an incident are found by when it was; its end is not part of it."""
        made: list[Status] = []
        for _ in range(3):
            self.node.begin(self.node.now_ms + 1_000, self.node.wall_us + 1_000_000)
            made.append(Status(self.add(b"q", b"b", b"0")))
        second_ms = b"%d" % (self.node.wall_us // 1000 - 1_000)
        third_ms = b"%d" % (self.node.wall_us // 1000)
        for words, expected in (
            ((b"SINCE", second_ms), made[1:]),
            ((b"UNTIL", second_ms), made[:1]),
            ((b"SINCE", second_ms, b"UNTIL", third_ms), made[1:2]),
        ):
            reply = self.call(jscan, b"JSCAN", b"0", b"BUSYLOOP", *words)
            assert isinstance(reply, list) and isinstance(reply[1], list)
            self.assertEqual(set(expected), set(reply[1]))
        line = b"ERR value is not an integer or out of range"
        self.assert_refused(line, jscan, b"JSCAN", b"0", b"SINCE", b"noon")

    def test_reason(self) -> None:
        """Jobs that fail alike are found by the reason that consumers gave, as are dead letters."""
        timed, other, _ = [Status(self.add(b"q", b"b", b"0")) for _ in range(3)]
        letter = letter_body(make_job(1), b"timeout of mail.example", ME, True, 0)
        dead = Status(self.add(b"dead:q", letter, b"0"))
        self.add(b"dead:q", b'{"version": 2, "reason": 1}', b"0")
        self.call(getjob, b"GETJOB", b"COUNT", b"2", b"FROM", b"q")
        for job_id, reason in ((timed, b"a timeout"), (other, b"no route")):
            self.node.enqueue([job_id.text], True, reason=reason)
        for pattern, expected in (
            (b"*timeout*", {timed, dead}),
            (b"no route", {other}),
            (b"timeout", set()),
        ):
            reply = self.call(jscan, b"JSCAN", b"0", b"BUSYLOOP", b"REASON", pattern)
            assert isinstance(reply, list) and isinstance(reply[1], list)
            self.assertEqual(expected, set(reply[1]), pattern)
        line = b"ERR REASON longer than 256 bytes"
        self.assert_refused(line, jscan, b"JSCAN", b"0", b"REASON", b"*" * 257)


class ReaderTests(JobsCase):
    """What a client with the read-only password may ask for at once."""

    def setUp(self) -> None:
        super().setUp()
        for number in range(3):
            self.add(b"q", b"%d" % number * 5_000_000, b"0")
        self.client.reader = True

    def test_counts(self) -> None:
        """A reader cannot ask for everything in one step, by any number."""
        line = b"ERR COUNT must be between 1 and 10000 with the read-only password"
        for count in (b"0", b"-1", b"10001", b"9000000000000000000"):
            for handler, name in ((qscan, b"QSCAN"), (jscan, b"JSCAN")):
                self.assert_refused(line, handler, name, b"0", b"COUNT", count)
        line = b"ERR count must be between -10000 and 10000 with the read-only password"
        for count in (b"10001", b"-10001"):
            self.assert_refused(line, qpeek, b"QPEEK", b"q", count)
        for count in (b"1", b"10000"):
            self.call(qscan, b"QSCAN", b"0", b"COUNT", count)

    def test_peek_up_to_the_limit(self) -> None:
        """What is just as long as an answer may be is shown as a whole, and a byte more is not."""
        for _ in range(2):
            self.add(b"large", b"x" * 1_048_576, b"0")
        self.add(b"large", b"y", b"0")
        reply = self.call(qpeek, b"QPEEK", b"large", b"100")
        assert isinstance(reply, list)
        self.assertEqual(2, len(reply))

    def test_peek(self) -> None:
        """Of large jobs a reader sees as many as fit into an answer, at least one."""
        for count, bodies in ((b"3", [b"0"]), (b"-10000", [b"2"]), (b"1", [b"0"])):
            reply = self.call(qpeek, b"QPEEK", b"q", count)
            assert isinstance(reply, list)
            seen = [item[2] for item in reply if isinstance(item, list)]
            self.assertEqual([body * 5_000_000 for body in bodies], seen)
