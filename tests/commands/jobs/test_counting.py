"""QCOUNT, QLIST, QFLUSH and WAITJOB: words, replies and errors."""

from __future__ import annotations

from disque_tx.commands.base.values import Error, Status, Value
from disque_tx.commands.jobs import counting, getjob, jobs
from disque_tx.core.base.client import NOT_BLOCKED
from tests.commands.desk import DeskCase

_SOURCES = (b"queued", b"nodes", b"nodes-missing")
SYNTAX = b"ERR syntax error"


class OverviewCase(DeskCase):
    """A node alone, with some jobs."""

    def add(self, queue: bytes, *options: bytes) -> bytes:
        """A job, and its ID."""
        status = self.call(jobs.addjob, b"ADDJOB", queue, b"body", b"0", *options)
        assert isinstance(status, Status)
        return status.text

    def get(self, queue: bytes, count: int = 1) -> None:
        """Fetch jobs."""
        self.call(getjob.getjob, b"GETJOB", b"COUNT", b"%d" % count, b"FROM", queue)

    def turns(self, count: int = 1) -> None:
        """Let a few milliseconds pass."""
        for _ in range(count):
            self.node.begin(self.node.now_ms + 1, self.node.wall_us + 1_000)
            self.node.run_due()

    def answer(self) -> Value:
        """The reply that came once the client was served."""
        (value,) = self.client.replies.values  # type: ignore[attr-defined]
        self.assertEqual(NOT_BLOCKED, self.client.blocked)
        return value  # type: ignore[no-any-return]


class CountTests(OverviewCase):
    """QCOUNT."""

    def count(self, name: bytes) -> dict[bytes, Value]:
        """The map that QCOUNT answers."""
        reply = self.call(counting.qcount, b"QCOUNT", name)
        assert isinstance(reply, dict)
        return {key: value for key, value in reply.items() if isinstance(key, bytes)}

    def test_processes(self) -> None:
        """A daemon of one process may be asked about all its processes, too."""
        self.add(b"q")
        reply = self.call(counting.qcount, b"QCOUNT", b"q", b"PROCESSES")
        assert isinstance(reply, dict)
        self.assertEqual((1, 1, []), tuple(reply[n] for n in _SOURCES))
        words = (b"QLIST", b"CURSOR", b"5:q", b"PROCESSES")
        self.assertEqual([], self.answers(counting.qlist, *words))
        self.node.membership.siblings = [bytes(40)]
        error = b"ERR CURSOR with PROCESSES needs SORT name"
        self.assert_refused(error, counting.qlist, *words)

    def test_map(self) -> None:
        """One look shows where the jobs of a queue are."""
        for _ in range(5):
            self.add(b"q")
        self.add(b"q", b"DELAY", b"9")
        self.add(b"dead:q")
        self.get(b"q", 2)
        self.node.begin(self.node.now_ms + 1_500, self.node.wall_us)
        self.assertEqual(
            {
                b"queued": 3,
                b"delayed": 1,
                b"backoff": 0,
                b"in-flight": 2,
                b"dead": 1,
                b"blocked-clients": 0,
                b"oldest-ms": 1_500,
                b"in-per-s": b"0.500",
                b"out-per-s": b"0.200",
                b"loaded": 0,
                b"nodes": 1,
                b"nodes-missing": [],
            },
            self.count(b"q"),
        )

    def test_unknown(self) -> None:
        """A queue that does not exist counts nothing, and does not come to be."""
        self.assertEqual({0, 1, b"0.000"}, {v for v in self.count(b"x").values() if v != []})
        self.assertIsNone(self.node.queues.get(b"x"))

    def test_dead_queue(self) -> None:
        """Dead letters are counted where the policy of the queue has them put."""
        self.node.policies.set(b"q", b"dead-queue", b"morgue")
        self.add(b"morgue")
        self.assertEqual(1, self.count(b"q")[b"dead"])

    def test_blocked(self) -> None:
        """Clients that wait for jobs are counted."""
        waiting = self.connect(b"127.0.0.1:5002")
        self.node.get_jobs(waiting, [b"q"], 1, 0, False, False)
        self.assertEqual(1, self.count(b"q")[b"blocked-clients"])

    def test_cluster_of_one(self) -> None:
        """CLUSTER needs no other node."""
        self.add(b"q")
        alone = self.call(counting.qcount, b"QCOUNT", b"q")
        self.assertEqual(alone, self.call(counting.qcount, b"QCOUNT", b"q", b"cluster"))

    def test_syntax(self) -> None:
        """Other words are refused."""
        for words in ((b"x",), (b"CLUSTER", b"x")):
            self.assert_refused(SYNTAX, counting.qcount, b"QCOUNT", b"q", *words)


class ListTests(OverviewCase):
    """QLIST."""

    def page(self, *words: bytes) -> tuple[list[bytes], bytes]:
        """The names on one page, and its cursor."""
        self.answers(counting.qlist, b"QLIST", *words)
        while self.client.blocked:
            self.turns()
        reply = self.answer()
        assert isinstance(reply, dict)
        rows, cursor = reply[b"queues"], reply[b"cursor"]
        assert isinstance(rows, list) and isinstance(cursor, bytes)
        return [row[b"name"] for row in rows if isinstance(row, dict)], cursor  # type: ignore

    def pages(self, *words: bytes) -> list[bytes]:
        """The names on all pages."""
        names, cursor = self.page(*words)
        while cursor != b"0":
            more, cursor = self.page(*words, b"CURSOR", cursor)
            self.assertNotEqual([], more)
            names += more
        return names

    def fill(self) -> None:
        """Three queues, of one to three jobs, the longest of them the youngest."""
        for count, name in enumerate((b"b", b"a", b"c"), 1):
            self.node.begin(self.node.now_ms + 1_000, self.node.wall_us)
            for _ in range(count):
                self.add(name)

    def test_order(self) -> None:
        """Longest first by default; by name, by the oldest job, or by what moves."""
        self.fill()
        self.get(b"b")
        self.node.queues.obtain(b"empty", self.node.now_ms)
        by = {sort: self.page(b"SORT", sort)[0] for sort in (b"name", b"OLDEST", b"rate")}
        self.assertEqual([b"c", b"a", b"b", b"empty"], self.page()[0])
        self.assertEqual([b"a", b"b", b"c", b"empty"], by[b"name"])
        self.assertEqual([b"a", b"c", b"b", b"empty"], by[b"OLDEST"])
        self.assertEqual([b"c", b"a", b"b", b"empty"], by[b"rate"])

    def test_pages(self) -> None:
        """Every queue is on one page, in any order and with pages of any size."""
        self.fill()
        for sort in (b"name", b"queued", b"oldest", b"rate"):
            whole = self.page(b"SORT", sort)[0]
            for count in (b"1", b"2", b"3"):
                self.assertEqual(whole, self.pages(b"SORT", sort, b"COUNT", count), sort)

    def test_pages_of_many(self) -> None:
        """Most queues stand behind the page, and are passed over: those that do not are on it, with
        equal numbers by name."""
        lengths: dict[bytes, int] = {}
        for number in range(300):
            name = b"q%03d" % (number * 37 % 300)
            lengths[name] = number * 7 % 5
            self.node.queues.obtain(name, self.node.now_ms)
            for _ in range(lengths[name]):
                self.add(name)
        expected = sorted(lengths, key=lambda name: (-lengths[name], name))
        for count in (b"7", b"100", b"299", b"300"):
            self.assertEqual(expected, self.pages(b"COUNT", count))
        self.assertEqual(sorted(lengths), self.pages(b"SORT", b"name", b"COUNT", b"7"))

    def test_match(self) -> None:
        """A pattern selects queues."""
        self.fill()
        self.assertEqual([b"a", b"b"], self.page(b"MATCH", b"[ab]", b"SORT", b"name")[0])

    def test_hostile_pattern(self) -> None:
        """A pattern of many stars ends as fast as any."""
        self.add(b"a" * 200)
        self.assertEqual([], self.page(b"MATCH", b"a*" * 127 + b"b")[0])

    def test_long_names(self) -> None:
        """Names that take long to match are looked at over more turns than short ones."""
        for number in range(150):
            self.node.queues.obtain(b"%03d" % number + b"a" * 1_000, self.node.now_ms)
        pattern = b"*" + b"[a-z]" * 40 + b"0*"
        self.assertEqual([], self.answers(counting.qlist, b"QLIST", b"MATCH", pattern))
        self.turns(5)
        self.assertTrue(self.client.blocked)
        self.turns(50)
        self.assertEqual({b"cursor", b"queues"}, set(self.answer()) & {b"cursor", b"queues"})  # type: ignore[arg-type]

    def test_queues_without_queue(self) -> None:
        """A queue of which all jobs are delayed is in the list, whether it exists or not."""
        self.add(b"later", b"DELAY", b"9")
        self.assertEqual([b"later"], self.page()[0])

    def test_many(self) -> None:
        """With many queues the page takes several turns, and has the right rows."""
        for number in range(2_000):
            self.node.queues.obtain(b"q%04d" % number, self.node.now_ms)
        self.add(b"q1234")
        self.assertEqual([], self.answers(counting.qlist, b"QLIST", b"COUNT", b"2"))
        self.turns()
        self.assertNotEqual(NOT_BLOCKED, self.client.blocked)
        self.turns(20)
        reply = self.answer()
        assert isinstance(reply, dict)
        rows = reply[b"queues"]
        assert isinstance(rows, list)
        self.assertEqual([b"q1234", b"q0000"], [r[b"name"] for r in rows if isinstance(r, dict)])

    def test_client_gone(self) -> None:
        """A list for a client that has gone is given up."""
        self.assertEqual([], self.answers(counting.qlist, b"QLIST"))
        self.node.client_gone(self.client)
        self.turns()
        self.assertFalse(self.node.state.slices.busy())
        self.assertEqual([], self.client.replies.values)  # type: ignore[attr-defined]

    def test_errors(self) -> None:
        """Each option names what it takes."""
        for words, line in (
            ((b"NOSUCH",), SYNTAX),
            ((b"NOSUCH", b"1"), SYNTAX),
            ((b"MATCH",), SYNTAX),
            ((b"MATCH", b"x" * 1_025), b"ERR MATCH pattern longer than 1024 bytes"),
            ((b"SORT", b"size"), b"ERR SORT must be queued, oldest, name or rate"),
            ((b"COUNT", b"0"), b"ERR COUNT must be between 1 and 1000"),
            ((b"COUNT", b"1001"), b"ERR COUNT must be between 1 and 1000"),
            ((b"COUNT", b"x"), b"ERR COUNT must be between 1 and 1000"),
            ((b"CURSOR", b"x"), b"ERR invalid cursor"),
            ((b"CURSOR", b"x:a"), b"ERR invalid cursor"),
            ((b"CURSOR", b"1:a", b"CLUSTER"), b"ERR CURSOR with CLUSTER needs SORT name"),
        ):
            self.assert_refused(line, counting.qlist, b"QLIST", *words)

    def test_too_many(self) -> None:
        """However many clients ask, the requests under way are bounded."""
        for number in range(1_000):
            self.client = self.connect(b"127.0.0.1:%d" % number)
            self.assertEqual([], self.answers(counting.qlist, b"QLIST"))
        self.client = self.connect(b"127.0.0.1:1")
        line = b"ERR Too many long requests are under way, try again later"
        self.assert_refused(line, counting.qlist, b"QLIST")


class FlushTests(OverviewCase):
    """QFLUSH."""

    def flush(self, *words: bytes) -> Value:
        """The reply."""
        self.assertEqual([], self.answers(counting.qflush, b"QFLUSH", *words))
        while self.client.blocked:
            self.turns()
        return self.answer()

    def setUp(self) -> None:
        super().setUp()
        self.queued = [self.add(b"q") for _ in range(3)]
        self.get(b"q")
        self.later = self.add(b"q", b"DELAY", b"9")
        self.other = self.add(b"other")

    def left(self) -> set[bytes]:
        """The jobs that are still there."""
        return {job.id for job in self.node.jobs.table.values()}

    def test_queued(self) -> None:
        """Without a state, queued jobs end, and nothing else."""
        self.assertEqual(2, self.flush(b"q"))
        self.assertEqual({self.queued[0], self.later, self.other}, self.left())
        self.assertEqual(2, self.node.totals.flushed)
        self.assertEqual(0, self.flush(b"q"))

    def test_states(self) -> None:
        """Each state by itself, several, or all."""
        self.assertEqual(1, self.flush(b"q", b"STATE", b"delayed"))
        self.assertEqual(1, self.flush(b"q", b"STATE", b"In-Flight", b"STATE", b"backoff"))
        self.assertEqual(2, self.flush(b"q", b"STATE", b"any"))
        self.assertEqual({self.other}, self.left())

    def test_details(self) -> None:
        """WITHDETAILS shows which nodes have not emptied their part."""
        expected = {b"flushed": 4, b"nodes": 1, b"nodes-missing": []}
        self.assertEqual(expected, self.flush(b"q", b"STATE", b"any", b"WITHDETAILS", b"CLUSTER"))

    def test_many(self) -> None:
        """A long queue is emptied in parts; jobs that come meanwhile stay."""
        for _ in range(1_000):
            self.add(b"long")
        self.assertEqual([], self.answers(counting.qflush, b"QFLUSH", b"long"))
        other = self.client
        self.client = self.connect(b"127.0.0.1:9")
        self.turns()
        late = self.add(b"long")
        self.turns(9)
        self.client = other
        self.assertEqual(1_000, self.answer())
        self.assertIn(late, self.left())

    def test_others_in_the_way(self) -> None:
        """Looking for jobs that are in no queue takes several turns on a node with many jobs."""
        for _ in range(9_000):
            self.add(b"other")
        self.assertEqual([], self.answers(counting.qflush, b"QFLUSH", b"q", b"STATE", b"delayed"))
        self.turns(1)
        self.assertTrue(self.client.blocked)
        self.turns(9)
        self.assertEqual(1, self.answer())

    def test_client_gone(self) -> None:
        """A flush that was begun is finished without its client."""
        self.assertEqual([], self.answers(counting.qflush, b"QFLUSH", b"q"))
        self.node.client_gone(self.client)
        self.turns(3)
        self.assertEqual(2, self.node.totals.flushed)

    def test_errors(self) -> None:
        """What cannot be flushed is named."""
        states = b"ERR STATE must be queued, delayed, backoff, in-flight, loaded or any"
        self.assert_refused(states, counting.qflush, b"QFLUSH", b"q", b"STATE", b"acked")
        for words in ((b"STATE",), (b"x",)):
            self.assert_refused(SYNTAX, counting.qflush, b"QFLUSH", b"q", *words)


class WaitTests(OverviewCase):
    """WAITJOB."""

    def wait(self, job_id: bytes, *words: bytes) -> None:
        """Begin to wait, as another client."""
        self.client = self.connect(b"127.0.0.1:7")
        self.assertEqual([], self.answers(counting.waitjob, b"WAITJOB", job_id, *words))

    def test_acknowledged(self) -> None:
        """A producer learns that its job is done, by either way to say so."""
        for acknowledge in (self.node.acknowledge, self.node.fast_acknowledge):
            job_id = self.add(b"q")
            self.wait(job_id)
            acknowledge([job_id])
            self.assertEqual(Status(b"ACKED"), self.answer())

    def test_deleted(self) -> None:
        """A job that is deleted, or flushed, was not done."""
        job_id = self.add(b"q")
        self.wait(job_id)
        self.node.delete([job_id])
        self.assertEqual(Status(b"DELETED"), self.answer())
        self.wait(self.add(b"q"))
        waiting, self.client = self.client, self.connect(b"127.0.0.1:8")
        self.answers(counting.qflush, b"QFLUSH", b"q")
        self.turns(2)
        self.client = waiting
        self.assertEqual(Status(b"DELETED"), self.answer())

    def test_overflow(self) -> None:
        """A job for which there was no room in its queue was not done either."""
        self.node.policies.set(b"q", b"max-length", b"1")
        self.node.policies.set(b"q", b"overflow", b"drop-oldest")
        self.wait(self.add(b"q"))
        waiting, self.client = self.client, self.connect(b"127.0.0.1:8")
        self.add(b"q")
        self.node.serve()
        self.client = waiting
        self.assertEqual(Status(b"DELETED"), self.answer())

    def test_expired(self) -> None:
        """A job whose life is over without an acknowledgement is expired."""
        self.wait(self.add(b"q", b"TTL", b"1"))
        self.node.begin(self.node.now_ms + 1_100, self.node.wall_us)
        self.node.run_due()
        self.assertEqual(Status(b"EXPIRED"), self.answer())

    def test_expired_at_delivery(self) -> None:
        """It is expired, too, when a consumer finds it late."""
        self.wait(self.add(b"q", b"TTL", b"1"))
        self.node.begin(self.node.now_ms + 1_100, self.node.wall_us)
        self.node.get_jobs(self.connect(b"127.0.0.1:8"), [b"q"], 1, 0, True, False)
        self.assertEqual(Status(b"EXPIRED"), self.answer())

    def test_timeout(self) -> None:
        """After the time-out the answer is null, and the job is as it was."""
        job_id = self.add(b"q")
        self.wait(job_id, b"TIMEOUT", b"100")
        self.turns(99)
        self.assertNotEqual(NOT_BLOCKED, self.client.blocked)
        self.turns(30)
        self.assertIsNone(self.answer())
        self.assertEqual({}, self.node.waiters.endings)

    def test_several_clients(self) -> None:
        """All that wait for one job are answered; one that goes away disturbs no other."""
        job_id = self.add(b"q")
        clients = []
        for _ in range(3):
            self.wait(job_id)
            clients.append(self.client)
        self.node.client_gone(clients[1])
        self.node.acknowledge([job_id])
        for self.client in (clients[0], clients[2]):
            self.assertEqual(Status(b"ACKED"), self.answer())
        self.assertEqual([], clients[1].replies.values)  # type: ignore[attr-defined]

    def test_unknown(self) -> None:
        """Who asks the wrong node learns which one made the job."""
        line = (
            b"NOJOB Job not known in the context of this node."
            b" It was made by the node whose ID begins with 0badcafe."
        )
        job_id = b"D-0badcafe-" + b"x" * 24 + b"-05a1"
        self.assert_refused(line, counting.waitjob, b"WAITJOB", job_id)

    def test_flushed_node(self) -> None:
        """A node that forgets all jobs does not know what becomes of them."""
        self.wait(self.add(b"q"))
        self.node.flush_all()
        line = b"NOJOB Job not known any more in the context of this node."
        self.assertEqual(Error(line), self.answer())

    def test_errors(self) -> None:
        """Malformed IDs, time-outs and words are refused."""
        job_id = self.add(b"q")
        for words, line in (
            ((b"x",), b"BADID Invalid Job ID format."),
            ((job_id, b"TIMEOUT"), SYNTAX),
            ((job_id, b"FOR", b"1"), SYNTAX),
            ((job_id, b"TIMEOUT", b"-1"), b"ERR timeout is negative"),
            ((job_id, b"TIMEOUT", b"x"), b"ERR timeout is not an integer or out of range"),
        ):
            self.assert_refused(line, counting.waitjob, b"WAITJOB", *words)
