"""ASK: what nodes answer about themselves, to clients and to each other."""

from __future__ import annotations

from disque_tx.commands import asking
from disque_tx.commands.base.context import Server
from disque_tx.commands.base.endings import FORGOTTEN_MS
from disque_tx.commands.base.readonly import reads
from disque_tx.commands.base.values import Error, Status, Value
from disque_tx.commands.jobs import jobs
from disque_tx.commands.server.memory import MemoryControl
from disque_tx.commands.table import standard_registry
from disque_tx.core.base.client import Client
from disque_tx.core.counting.asked import ask_words
from disque_tx.messages.bus import QueryMessage
from disque_tx.messages.bustypes import CAN_ASK, CAN_LOADED, CAN_QUERY, REPORT
from tests.commands.desk import ME
from tests.commands.jobs.test_counting import OverviewCase
from tests.core.counting.test_questions import QuestionCase
from tests.core.peerbench import B, C, D

_ABLE = CAN_QUERY | CAN_LOADED | CAN_ASK
SYNTAX = b"ERR syntax error"
UNKNOWN = b"ERR ASK knows no such question, or not with so many words"


class HereTests(OverviewCase):
    """A node alone answers for itself."""

    def setUp(self) -> None:
        super().setUp()
        self.node.queue_queries.respondent = asking.LocalRespondent(self.server)

    def ask(self, *words: bytes) -> Value:
        """The answer of this node."""
        reply = self.call(asking.ask, b"ASK", b"processes", *words)
        assert isinstance(reply, dict), reply
        self.assertEqual([], reply[b"nodes-missing"])
        answers = reply[b"answers"]
        assert isinstance(answers, list)
        ((node, value),) = answers  # type: ignore[misc]
        self.assertEqual(ME, node)
        return value

    def test_queues(self) -> None:
        """Queues come with their figures, a page of the table at a time, and one by its name says
        who paused it."""
        self.add(b"q")
        self.add(b"q")
        self.get(b"q")
        self.node.pause(b"q", 1, b"web1")
        row = [b"q", 1, 0, 0, 0, 0, 2, 1, 0, b"in", 0, 0, 1, 0]
        self.assertEqual([b"0", [row]], self.ask(b"queues", b"0", b"500"))
        said = self.node.pausing.kept[b"q"]
        self.assertEqual([*row, b"web1", said.at_s], self.ask(b"QUEUE", b"q"))
        self.assertIsNone(self.ask(b"QUEUE", b"none"))
        counts = self.ask(b"COUNTS", b"q", b"none")
        assert isinstance(counts, list)
        self.assertEqual([[1, 0, 0, 1, 0, 0, 0, 200, 100, 0], [0] * 10], counts)

    def test_jobs(self) -> None:
        """It says what it has to do with jobs, in which order they stand, and shows as much of
        their bodies as is asked for."""
        first, second = self.add(b"q"), self.add(b"q")
        unknown = b"D-%s-%024d-05a1" % (ME[:8], 99)
        ids = (first, second, unknown)
        self.assertEqual([3, 3, 0], self.ask(b"HOLDS", *ids))
        self.call(jobs.ackjob, b"ACKJOB", second)
        self.node.membership.nodes[B] = self.node.membership.myself
        self.assertEqual([3, 0, 0], self.ask(b"HOLDS", *ids))
        ctime = self.node.jobs.get(first).ctime  # type: ignore[union-attr]
        self.assertEqual(
            [b"1024:%d:%s" % (ctime, first)], self.ask(b"QUEUED", b"q", b"oldest", b"9")
        )
        self.assertEqual([], self.ask(b"QUEUED", b"none", b"newest", b"9"))
        self.assertEqual([[4, b"bo"], None], self.ask(b"BODIES", b"3", b"2", first, unknown))
        self.assertEqual([b"0", [Status(first)]], self.ask(b"JOBS", b"0", b"9", b"q", b"queued"))
        shown = self.ask(b"SHOW", first)
        assert isinstance(shown, list)
        self.assertEqual([b"id", first, b"queue", b"q"], shown[:4])

    def pass_ms(self, ms: int) -> None:
        """Let some time pass."""
        self.node.begin(self.node.now_ms + ms, self.node.wall_us + ms * 1_000)
        self.node.run_due()

    def test_place(self) -> None:
        """An outline says where a job is, and for how long, in place of its body."""
        job_id = self.add(b"q", b"DELAY", b"60")

        def place(job_id: bytes) -> list[Value]:
            self.pass_ms(2_500)
            outline = self.ask(b"OUTLINE", job_id)
            assert isinstance(outline, list)
            self.assertNotIn(b"body", outline)
            return outline[-4:]

        self.assertEqual([b"place", b"delayed", b"place-age", 0], place(job_id))
        job_id = self.add(b"q")
        self.assertEqual([b"place", b"none", b"place-age", 2_500], place(job_id))
        self.get(b"q")
        self.assertEqual([b"place", b"in-flight", b"place-age", 2_500], place(job_id))

    def test_ended(self) -> None:
        """Another node that asks again and again learns how a job ended, also a while after it has
        ended, and its questions leave nothing behind when it asks no more."""
        done, deleted, left = self.add(b"q"), self.add(b"q"), self.add(b"q")
        for job_id in (done, deleted, left):
            self.assertIsNone(self.ask(b"ENDED", job_id))
        self.call(jobs.ackjob, b"ACKJOB", done)
        self.call(jobs.deljob, b"DELJOB", deleted)
        for _ in range(2):
            self.assertEqual(Status(b"ACKED"), self.ask(b"ENDED", done))
            self.assertEqual(Status(b"DELETED"), self.ask(b"ENDED", deleted))
        self.pass_ms(FORGOTTEN_MS - 100)
        self.assertIsNone(self.ask(b"ENDED", left))
        self.pass_ms(FORGOTTEN_MS - 100)
        self.assertEqual(1, self.node.blocked_clients)
        self.pass_ms(200)
        self.assertEqual(0, self.node.blocked_clients)
        self.assertIsNone(self.ask(b"ENDED", left))
        unknown = self.ask(b"ENDED", done)
        assert isinstance(unknown, Error)
        self.assertEqual(b"NOJOB Job not known in the context of this node.", unknown.line[:48])

    def test_bodies_in_parts(self) -> None:
        """Bodies that are too much for one answer are left to the next question."""
        body = b"x" * (asking.BODIES_BYTES // 2)
        ids = []
        for _ in range(3):
            status = self.call(jobs.addjob, b"ADDJOB", b"q", body, b"0")
            assert isinstance(status, Status)
            ids.append(status.text)
        rows = self.ask(b"BODIES", b"%d" % 2**40, b"0", *ids)
        assert isinstance(rows, list)
        self.assertEqual(2, len(rows))

    def test_process(self) -> None:
        """Clients come by pages, with how many there are; the slow log and latencies in parts."""
        self.connect(b"10.0.0.9:1")
        found = self.ask(b"CLIENTS", b"1", b"5")
        assert isinstance(found, list) and isinstance(found[1], list)
        self.assertEqual((2, 1), (found[0], len(found[1])))
        self.assertIn(b"addr=10.0.0.9:1 ", found[1][0])
        self.server.slowlog.record([b"PING"], 7, 20_000)
        self.assertEqual([[0, 7, 20_000, [b"PING"]]], self.ask(b"SLOWLOG", b"0", b"5"))
        self.assertEqual([], self.ask(b"LATENCY"))

    def test_actions(self) -> None:
        """Jobs are acted on where they are."""
        job_id = self.add(b"q")
        self.assertEqual(1, self.ask(b"DEQUEUE", job_id))
        self.assertEqual(1, self.ask(b"ENQUEUE", job_id))
        self.get(b"q")
        self.assertEqual(300, self.ask(b"WORKING", job_id))
        self.assertEqual(1, self.ask(b"NACK", b"REASON", b"why", job_id))
        self.assertEqual(1, self.ask(b"ACKJOB", job_id))

    def test_move(self) -> None:
        """Jobs are moved where they are."""
        self.add(b"q")
        self.add(b"q")
        self.assertEqual(1, self.ask(b"MOVE", b"q", b"r", b"COUNT", b"1"))
        self.assertIsInstance(self.ask(b"MOVE", b"q", b"q"), Error)

    def test_errors(self) -> None:
        """What cannot be asked is refused at once; what a node refuses is its answer."""
        self.assertEqual(Error(b"BADID Invalid Job ID format."), self.ask(b"SHOW", b"x"))
        for words, line in (
            ((b"PROCESSES", b"CONFIG", b"GET"), UNKNOWN),
            ((b"PROCESSES", b"SHOW"), UNKNOWN),
            ((b"ELSEWHERE", b"LATENCY"), SYNTAX),
            (
                (b"NODE", b"QUEUE", b"x" * 5_000),
                b"ERR A question has at most 1010 words of 4096 bytes",
            ),
        ):
            self.assert_refused(line, asking.ask, b"ASK", *words)
        self.assertIsInstance(self.ask(b"QUEUES", b"0", b"501"), Error)

    def test_troubled(self) -> None:
        """A node that loads its log says so, for its figures would be wrong; one that cannot write
        it changes nothing."""
        self.server.degraded = True
        self.control.log_error = "disk full"
        job_id = self.add(b"q")
        self.assertIsInstance(self.ask(b"ACKJOB", job_id), Error)
        self.assertNotIsInstance(self.ask(b"SHOW", job_id), Error)
        self.control.is_loading = True
        self.assertIsInstance(self.ask(b"SHOW", job_id), Error)

    def test_readers(self) -> None:
        """The read-only password allows the questions that change nothing."""
        self.assertTrue(reads(b"ask", [b"ASK", b"CLUSTER", b"show", b"D-1"]))
        self.assertFalse(reads(b"ask", [b"ASK", b"CLUSTER", b"ackjob", b"D-1"]))
        self.assertFalse(reads(b"ask", [b"ASK", b"CLUSTER"]))


class PeersTests(QuestionCase):
    """Several nodes."""

    def setUp(self) -> None:
        super().setUp()
        self.server = Server(self.node, MemoryControl({}), standard_registry())
        self.node.queue_queries.respondent = asking.LocalRespondent(self.server)
        for peer in (B, C):
            self.show(peer, _ABLE)

    def ask(self, *argv: bytes) -> Client:
        """The client that asked."""
        client = self.connect()
        asking.ask(self.server, client, [b"ASK", *argv])
        return client

    def test_processes(self) -> None:
        """The other processes of the daemon are asked, and nobody else; each answer stands by
        itself, and who is missing is named."""
        self.node.membership.siblings = [B, D]
        client = self.ask(b"PROCESSES", b"QUEUE", b"q")
        self.assertEqual([], [m for m in self.sent_to(C) if isinstance(m, QueryMessage)])
        question = self.asked(B)
        self.assertEqual([b"ASK", b"2", b"QUEUE", b"q"], question.words)
        self.report(B, question.number, b"*2", b":-5", b"$x")
        mine = self.node.membership.myself.id
        self.assertEqual(
            {b"answers": [[mine, None], [B, [-5, b"x"]]], b"nodes-missing": [D]},
            self.map_of(client),
        )

    def test_one(self) -> None:
        """One node alone can be asked, and says nothing of this one."""
        client = self.ask(C, b"SHOW", b"x")
        self.assertEqual([], [m for m in self.sent_to(B) if isinstance(m, QueryMessage)])
        self.report(C, self.asked(C).number, b"-NOJOB no")
        self.assertEqual([[C, Error(b"NOJOB no")]], self.map_of(client)[b"answers"])
        found = self.map_of(self.ask(D, b"LATENCY"))
        self.assertEqual(([], [D]), (found[b"answers"], found[b"nodes-missing"]))

    def test_older_nodes(self) -> None:
        """A node that does not know ASK is never sent one, and counts as missing."""
        self.show(C, CAN_QUERY | CAN_LOADED)
        client = self.ask(b"CLUSTER", b"LATENCY")
        self.assertEqual([], [m for m in self.sent_to(C) if isinstance(m, QueryMessage)])
        self.report(B, self.asked(B).number, b"*0")
        self.assertEqual([C], self.map_of(client)[b"nodes-missing"])

    def test_nonsense(self) -> None:
        """Words that are no reply, from a node that is broken or hostile, are not believed."""
        for words in (
            (),
            (b"",),
            (b"*1",),
            (b"*0", b":1"),
            (b":x",),
            (b":-",),
            (b"%d",),
            (b"*-1",),
            (b"*9", b"_"),
            (b"-ERR\r\n+OK",),
            (b"+OK\n",),
            (b"_x",),
            (b"x",),
            tuple([b"*1"] * 30 + [b"_"]),
            (b":" + b"9" * 30,),
        ):
            client = self.ask(C, b"LATENCY")
            self.report(C, self.asked(C).number, *words)
            self.assertEqual([C], self.map_of(client)[b"nodes-missing"], words)

    def answers(self) -> list[list[bytes]]:
        """What B was answered since the last look."""
        messages = [m for m in self.sent_to(B) if isinstance(m, QueryMessage)]
        return [m.words for m in messages if m.type == REPORT]

    def receive_question(self, *words: bytes) -> None:
        """B asks."""
        self.receive(B, QueryMessage(44, 7, list(words)))

    def test_answering(self) -> None:
        """Questions of other nodes are answered a few in a turn, however many come at once."""
        for _ in range(10):
            self.receive_question(*ask_words([b"LATENCY"]))
        self.assertEqual([], self.answers())
        for answered in (4, 4, 2):
            self.pass_ms(1)
            self.assertEqual(answered, len(self.answers()))

    def test_changing(self) -> None:
        """What changes jobs is only done while who asks still waits for it."""
        job_id = self.add(replicate=1)
        words = ask_words([b"DEQUEUE", job_id])
        self.receive_question(*words)
        ((time, now),) = self.answers()
        self.assertEqual((b"TIME", self.now_ms), (time, int(now)))
        self.receive_question(*words, b"%d" % (self.now_ms - 1))
        self.pass_ms(1)
        self.assertEqual([], self.answers())
        self.receive_question(*words, b"%d" % (self.now_ms + 500))
        self.pass_ms(1)
        self.assertEqual([[b":1"]], self.answers())

    def test_move(self) -> None:
        """Moved jobs are counted when they have their copies; when nobody waits for the answer any
        more, no further ones are moved."""
        self.add(replicate=1)
        words = ask_words([b"MOVE", b"q", b"r"])
        until = b"%d" % (self.now_ms + 500)
        self.receive_question(*words, until)
        self.pass_ms(1)
        self.assertEqual([[b":1"]], self.answers())
        job = self.node.jobs.get(self.add(replicate=1))
        assert job is not None
        job.repl = 2
        self.receive_question(*words, b"%d" % (self.now_ms + 100))
        self.pass_ms(50)
        self.assertEqual(([], 1), (self.answers(), self.node.blocked_clients))
        self.pass_ms(60)
        self.assertEqual(([], 0), (self.answers(), self.node.blocked_clients))

    def test_no_questions(self) -> None:
        """What is no question is not answered."""
        for words in (
            [b"ASK"],
            [b"ASK", b"1", b"CONFIG"],
            [b"ASK", b"3", b"CONFIG", b"GET", b"requirepass"],
            [b"ASK", b"2", b"LATENCY"],
            [b"ASK", b"x", b"LATENCY"],
            [*ask_words([b"LATENCY"]), b"99999"],
            ask_words([b"QUEUE", b"x" * 5_000]),
        ):
            self.receive_question(*words)
            self.pass_ms(5)
            self.assertEqual([], self.answers(), words[:3])

    def test_busy(self) -> None:
        """A node that asks without end leaves room for the questions of others, and for those of
        clients."""
        for _ in range(1_001):
            self.receive_question(*ask_words([b"LATENCY"]))
        found = self.map_of(self.ask(b"NODE", b"LATENCY"))
        self.assertEqual([], found[b"nodes-missing"])
        answered = 0
        for _ in range(60):
            self.pass_ms(1)
            answered += len(self.answers())
        self.assertEqual(200, answered)
        self.receive_question(*ask_words([b"LATENCY"]))
        self.pass_ms(1)
        self.assertEqual(1, len(self.answers()))
