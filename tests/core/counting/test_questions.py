"""Questions about queues to other nodes, and their answers."""

from __future__ import annotations

from disque_tx.commands.base.values import Error, Status, Value
from disque_tx.core import recovery
from disque_tx.core.base.client import Client
from disque_tx.core.counting.flushing import FLUSH_ANY, FLUSH_LOADED, FLUSH_QUEUED
from disque_tx.core.counting.listing import ListRequest
from disque_tx.core.counting.questions import PROCESSES
from disque_tx.core.counting.rankings import BY_NAME, BY_QUEUED
from disque_tx.messages.bus import Gossip, QueryMessage, QueueSignal
from disque_tx.messages.bustypes import (
    CAN_LOADED,
    CAN_QUERY,
    DELJOB,
    NEEDJOBS,
    PONG,
    QUERY,
    REPORT,
    SETACK,
)
from disque_tx.messages.records import ACKED, ACTIVE
from tests.core.bench import copied
from tests.core.peerbench import B, C, D, PeerCase

_SOURCES = (b"queued", b"nodes", b"nodes-missing")


class QuestionCase(PeerCase):
    """A node with peers, of which some can answer."""

    peers = (B, C)
    able: tuple[bytes, ...] = (B, C)

    def setUp(self) -> None:
        super().setUp()
        for peer in self.able:
            self.show(peer)

    def show(self, peer: bytes, features: int = CAN_QUERY) -> None:
        """The peer answers PONG on this node's link: it knows QUERY, or what is named."""
        message = Gossip(PONG, [])
        message.sender, message.port = peer, 7711
        message.features, message.epoch = features, 7
        link = self.node.membership.nodes[peer].link
        assert link is not None
        self.node.receive(link, message)

    def asked(self, peer: bytes) -> QueryMessage:
        """The one question that the peer was sent."""
        (message,) = [m for m in self.sent_to(peer) if isinstance(m, QueryMessage)]
        return message

    def report(self, peer: bytes, number: int, *words: bytes) -> None:
        """The peer answers."""
        self.receive(peer, QueryMessage(REPORT, number, list(words)))

    def row(self, name: bytes, queued: int, oldest_ms: int = 0) -> list[bytes]:
        """A row of a report."""
        numbers = (queued, 1, 0, 2, 0, 0, oldest_ms, 500, 250)
        return [name, *[b"%d" % number for number in numbers]]

    def map_of(self, client: Client) -> dict[Value, Value]:
        """The one map that a client was answered with."""
        (value,) = self.replies(client)
        assert isinstance(value, dict)
        return value


class AskingTests(QuestionCase):
    """This node asks."""

    def test_without_questions(self) -> None:
        """A node that could not read the answers asks nobody: they would be lost on it."""
        self.node.membership.features = 0
        answer = self.map_of(self.count())
        self.assertEqual([1, [B, C]], [answer[b"nodes"], answer[b"nodes-missing"]])
        self.assertEqual([], [m for m in self.sent_to(B) if isinstance(m, QueryMessage)])

    def count(self) -> Client:
        """QCOUNT q CLUSTER."""
        client = self.connect()
        self.node.queue_queries.count_jobs(client, b"q", True)
        return client

    def test_sums(self) -> None:
        """Numbers of all nodes are added up; the age is that of the oldest job of all."""
        self.add(replicate=1)
        client = self.count()
        number = self.asked(B).number
        self.assertEqual([b"COUNT", b"q"], self.asked(C).words)
        self.assertEqual([], self.replies(client))
        self.report(B, number, *self.row(b"q", 5, 70))
        self.report(C, number, *self.row(b"q", 6, 90))
        found = self.map_of(client)
        self.assertEqual(
            (12, 2, 4, 90, b"1.100", b"0.500", 3, []),
            tuple(
                found[name]
                for name in (
                    *(b"queued", b"delayed", b"in-flight", b"oldest-ms", b"in-per-s"),
                    *(b"out-per-s", b"nodes", b"nodes-missing"),
                )
            ),
        )

    def test_processes(self) -> None:
        """What is asked of a daemon of several processes is asked of these, and not of the rest
        of the cluster; one that this process does not know yet is named as missing."""
        client = self.connect()
        self.node.membership.siblings = [B]
        self.node.queue_queries.count_jobs(client, b"q", PROCESSES)
        self.assertEqual([], [m for m in self.sent_to(C) if isinstance(m, QueryMessage)])
        self.report(B, self.asked(B).number, *self.row(b"q", 5))
        found = self.map_of(client)
        self.assertEqual((5, 2, []), tuple(found[n] for n in _SOURCES))
        self.node.membership.siblings = [D]
        self.node.queue_queries.count_jobs(client, b"q", PROCESSES)
        found = self.map_of(client)
        self.assertEqual((0, 1, [D]), tuple(found[n] for n in _SOURCES))

    def test_silent_node(self) -> None:
        """After a second the answer is what is there, and names who is missing."""
        client = self.count()
        number = self.asked(B).number
        self.report(B, number, *self.row(b"q", 5))
        self.pass_ms(980)
        self.assertEqual([], self.replies(client))
        self.pass_ms(40)
        found = self.map_of(client)
        self.assertEqual((5, 2, [C]), (found[b"queued"], found[b"nodes"], found[b"nodes-missing"]))
        self.report(C, number, *self.row(b"q", 6))
        self.assertEqual([], self.replies(client))

    def test_nonsense(self) -> None:
        """A node whose answer makes no sense counts as missing, and can answer only once."""
        client = self.count()
        number = self.asked(B).number
        self.report(B, number, b"x")
        self.report(B, number, *self.row(b"q", 6))
        self.report(C, number, *self.row(b"q", 1)[:-1], b"-1")
        found = self.map_of(client)
        self.assertEqual(
            (0, 1, [B, C]), tuple(found[n] for n in (b"queued", b"nodes", b"nodes-missing"))
        )

    def test_client_gone(self) -> None:
        """Answers for a client that has gone are dropped."""
        client = self.count()
        number = self.asked(B).number
        self.node.client_gone(client)
        self.report(B, number, *self.row(b"q", 5))
        self.report(C, number, *self.row(b"q", 5))
        self.assertEqual([], self.replies(client))

    def test_list_by_name(self) -> None:
        """Pages by name are merged; a page ends where it would miss rows of some node."""
        self.add(b"b", replicate=1)
        client = self.connect()
        request = ListRequest(b"", BY_NAME, 2, None)
        self.node.queue_queries.list_queues(client, request, True)
        self.pass_ms(1)
        message = self.asked(B)
        self.assertEqual([b"LIST", b"", b"0", b"2"], message.words)
        self.report(B, message.number, b"1", *self.row(b"a", 1), *self.row(b"c", 1))
        self.report(C, message.number, b"0", *self.row(b"b", 4))
        found = self.map_of(client)
        self.assertEqual([(b"a", 1), (b"b", 5)], rows(found))
        self.assertEqual(b"0:b", found[b"cursor"])

    def test_list_by_length(self) -> None:
        """In another order, the queues found are counted at all nodes: what is short on each may
        be long in all."""
        self.add(b"b", replicate=1)
        client = self.connect()
        request = ListRequest(b"", BY_QUEUED, 2, None)
        self.node.queue_queries.list_queues(client, request, True)
        self.pass_ms(1)
        number = self.asked(B).number
        self.report(B, number, b"1", *self.row(b"x", 9), *self.row(b"y", 8))
        self.report(C, number, b"1", *self.row(b"z", 7), *self.row(b"y", 3))
        again = self.asked(B)
        self.assertEqual([b"COUNT", b"y", b"x"], again.words)
        self.report(B, again.number, *self.row(b"y", 8), *self.row(b"x", 9))
        self.report(C, again.number, *self.row(b"y", 3), *self.row(b"x", 3))
        found = self.map_of(client)
        self.assertEqual([(b"x", 12), (b"y", 11)], rows(found))
        self.assertEqual(b"0", found[b"cursor"])

    def test_flush(self) -> None:
        """QFLUSH CLUSTER empties the queue at all nodes that know it, and names the others."""
        self.add(replicate=1)
        client = self.connect()
        self.node.queue_queries.flush_queue(client, b"q", FLUSH_QUEUED, True, True)
        message = self.asked(B)
        self.assertEqual([b"FLUSH", b"q", b"1"], message.words)
        self.report(B, message.number, b"7")
        self.pass_ms(1)
        self.pass_ms(1_020)
        found = self.map_of(client)
        self.assertEqual((8, [C]), (found[b"flushed"], found[b"nodes-missing"]))

    def test_no_number(self) -> None:
        """A report about QFLUSH that is not one number counts for nothing: its sender is among the
        missing."""
        for words in ([], [b"x"], [b"-1"], [b"7", b"7"]):
            client = self.connect()
            self.node.queue_queries.flush_queue(client, b"q", FLUSH_QUEUED, True, True)
            self.report(B, self.asked(B).number, *words)
            self.pass_ms(1)
            self.pass_ms(1_020)
            found = self.map_of(client)
            self.assertEqual((0, [B, C]), (found[b"flushed"], found[b"nodes-missing"]), words)

    def test_time_limit(self) -> None:
        """A node that answers with its time gets the question again, with the time until which it
        holds by that clock: what is left of the second. It can ask for that once."""
        self.node.queue_queries.flush_queue(self.connect(), b"q", FLUSH_QUEUED, True, True)
        number = self.asked(B).number
        self.pass_ms(300)
        self.report(B, number, b"TIME", b"5000")
        again = self.asked(B)
        self.assertEqual((number, [b"FLUSH", b"q", b"1", b"5700"]), (again.number, again.words))
        self.report(B, number, b"TIME", b"5000")
        self.assertEqual([], self.sent_to(B))

    def test_late_time(self) -> None:
        """Once the client has its answer, no node is told to begin."""
        client = self.connect()
        self.node.queue_queries.flush_queue(client, b"q", FLUSH_QUEUED, True, True)
        number = self.asked(B).number
        self.pass_ms(1)
        self.pass_ms(1_020)
        self.assertEqual([B, C], self.map_of(client)[b"nodes-missing"])
        self.report(B, number, b"TIME", b"5000")
        self.assertEqual([], self.sent_to(B))


def rows(found: dict[Value, Value]) -> list[tuple[Value, Value]]:
    """Name and length of every row of QLIST."""
    page = found[b"queues"]
    assert isinstance(page, list)
    return [(row[b"name"], row[b"queued"]) for row in page if isinstance(row, dict)]


class MixedTests(QuestionCase):
    """A cluster with an original."""

    able = (B,)

    def test_never_sent(self) -> None:
        """An original is never sent a question, and counts as missing from the start."""
        client = self.connect()
        self.node.queue_queries.count_jobs(client, b"q", True)
        self.assertEqual([], self.sent_to(C))
        self.report(B, self.asked(B).number, *self.row(b"q", 5))
        self.assertEqual([C], self.map_of(client)[b"nodes-missing"])


class LoadedTests(QuestionCase):
    """Jobs that came from the log, in a cluster in which some nodes do not count them."""

    def setUp(self) -> None:
        super().setUp()
        self.show(C, CAN_QUERY | CAN_LOADED)

    def test_counted(self) -> None:
        """Each node is asked in the form that it understands, and the answers are added up."""
        client = self.connect()
        self.node.queue_queries.count_jobs(client, b"q", True)
        older, newer = self.asked(B), self.asked(C)
        self.assertEqual(([b"COUNT", b"q"], [b"COUNT-LOADED", b"q"]), (older.words, newer.words))
        self.report(B, older.number, *self.row(b"q", 5))
        self.report(C, newer.number, *self.row(b"q", 6), b"7")
        found = self.map_of(client)
        self.assertEqual((11, 7, []), (found[b"queued"], found[b"loaded"], found[b"nodes-missing"]))

    def test_listed(self) -> None:
        """Pages of both forms become one."""
        client = self.connect()
        request = ListRequest(b"", BY_NAME, 10, None)
        self.node.queue_queries.list_queues(client, request, True)
        self.report(B, self.asked(B).number, b"0", *self.row(b"a", 5), *self.row(b"b", 1))
        self.report(
            C, self.asked(C).number, b"0", *self.row(b"a", 6), b"7", *self.row(b"c", 1), b"1"
        )
        self.pass_ms(1)
        self.pass_ms(1)
        self.assertEqual([(b"a", 11), (b"b", 1), (b"c", 1)], rows(self.map_of(client)))

    def test_flushed(self) -> None:
        """A node that does not know loaded jobs flushes what it knows, and counts as missing when
        that is nothing."""
        for states, form, missing in (
            (FLUSH_ANY, [b"FLUSH", b"q", b"15"], []),
            (FLUSH_LOADED, None, [B]),
        ):
            client = self.connect()
            self.node.queue_queries.flush_queue(client, b"q", states, True, True)
            sent = [m.words for m in self.sent_to(B) if isinstance(m, QueryMessage)]
            self.assertEqual([form] if form else [], sent)
            newer = self.asked(C)
            self.assertEqual([b"FLUSH", b"q", b"%d" % states], newer.words)
            if form:
                self.report(B, newer.number, b"2")
            self.report(C, newer.number, b"1")
            self.pass_ms(1)
            self.pass_ms(1)
            self.assertEqual(missing, self.map_of(client)[b"nodes-missing"])

    def test_asked(self) -> None:
        """An older node that asks finds loaded jobs among those in backoff, and flushes them with
        these; a newer one finds them by themselves."""
        job = self.replicated(B)
        record = copied(job)
        record.state = ACTIVE
        recovery.load(self.node, record, False)
        self.clear_sent()
        for kind, backoff, loaded in ((b"COUNT", b"1", []), (b"COUNT-LOADED", b"0", [b"1"])):
            self.receive(B, QueryMessage(QUERY, 9, [kind, b"q"]))
            words = self.asked(B).words
            self.assertEqual((backoff, loaded), (words[3], words[10:]))
        for peer, left in ((C, 1), (B, 0)):
            words = [b"FLUSH", b"q", b"4", b"%d" % (self.now_ms + 500)]
            self.receive(peer, QueryMessage(QUERY, 9, words))
            self.pass_ms(1)
            self.pass_ms(1)
            kept = self.node.jobs.get(job.id)
            self.assertEqual(left, 0 if kept is None or kept.state == ACKED else 1)


class AnsweringTests(QuestionCase):
    """This node is asked."""

    def ask(self, *words: bytes) -> list[bytes] | None:
        """What this node answers to a question of a peer."""
        self.receive(B, QueryMessage(QUERY, 9, list(words)))
        self.pass_ms(1)
        self.pass_ms(1)
        reports = [m for m in self.sent_to(B) if isinstance(m, QueryMessage)]
        self.assertTrue(all((m.type, m.number) == (REPORT, 9) for m in reports))
        return list(reports[0].words) if reports else None

    def test_count(self) -> None:
        """The numbers of each queue asked for."""
        self.add(b"a", replicate=1)
        words = self.ask(b"COUNT", b"a", b"b")
        assert words is not None
        self.assertEqual(
            [(b"a", b"1"), (b"b", b"0")], [(words[0], words[1]), (words[10], words[11])]
        )

    def test_list(self) -> None:
        """A page: whether more follows, and its rows."""
        self.add(b"a", replicate=1)
        self.add(b"b", replicate=1)
        words = self.ask(b"LIST", b"*", b"0", b"1")
        assert words is not None
        self.assertEqual([b"1", b"a", b"1"], words[:3])
        words = self.ask(b"LIST", b"*", b"0", b"9", b"0", b"a")
        assert words is not None
        self.assertEqual([b"0", b"b", b"1"], words[:3])

    def test_flush(self) -> None:
        """Jobs end here, and their copies with them, if the question says until when it holds."""
        job = self.replicated(C)
        self.assertEqual([b"TIME", b"%d" % self.now_ms], self.ask(b"FLUSH", b"q", b"15"))
        self.assertNotEqual(ACKED, job.state)
        self.assertEqual([b"1"], self.ask(b"FLUSH", b"q", b"15", b"%d" % (self.now_ms + 10)))
        self.assertEqual(ACKED, job.state)
        self.assertEqual(["SETACK"], self.sent_names(C))

    def test_late_flush(self) -> None:
        """A question that comes too late ends nothing: clients went on without it (simulator, seed
        5000238)."""
        self.add(replicate=1)
        late = b"%d" % (self.now_ms - 1)
        self.assertIsNone(self.ask(b"FLUSH", b"q", b"15", late))
        self.assertEqual(1, self.length())

    def test_nonsense(self) -> None:
        """What is no question is not answered, and harms nothing."""
        self.add(replicate=1)
        for words in (
            (),
            (b"NOSUCH",),
            (b"COUNT", *[b"q"] * 1_001),
            (b"LIST", b"", b"9", b"1"),
            (b"LIST", b"", b"0", b"0"),
            (b"LIST", b"", b"0", b"1", b"x", b""),
            (b"LIST", b"", b"0", b"1", b"9" * 30, b""),
            (b"LIST", b"x" * 1_025, b"0", b"1"),
            (b"FLUSH", b"q", b"0", b"9" * 18),
            (b"FLUSH", b"q", b"32", b"9" * 18),
            (b"FLUSH", b"q", b"x", b"9" * 18),
            (b"FLUSH", b"q", b"1", b"x"),
            (b"FLUSH", b"q", b"1", b"9" * 19),
            (b"FLUSH", b"q", b"1", b"9", b"9"),
            (b"FLUSH", b"q"),
        ):
            self.assertIsNone(self.ask(*words), words[:2])
        self.assertEqual(1, self.length())


class FlushedCopiesTests(PeerCase):
    """What a flush does to jobs with copies."""

    def test_any(self) -> None:
        """Copies of jobs that other nodes have queued are not this node's to end."""
        job = self.replicated(B)
        self.node.dequeue([job.id])
        self.node.queue_queries.flush_queue(self.connect(), b"q", FLUSH_ANY, False, False)
        self.pass_ms(1)
        self.assertNotEqual(ACKED, job.state)


class WaitingTests(PeerCase):
    """WAITJOB for jobs with copies."""

    peers = (B,)

    def wait_for(self, job_id: bytes) -> Client:
        """WAITJOB of a new client."""
        client = self.connect()
        self.node.queue_queries.wait_for_job(client, job_id, 0)
        return client

    def test_acknowledged_elsewhere(self) -> None:
        """An acknowledgement at any node answers."""
        job = self.replicated(B)
        client = self.wait_for(job.id)
        self.receive_signal(B, SETACK, job.id, aux=2)
        self.assertEqual([Status(b"ACKED")], self.replies(client))

    def test_fast_acknowledged_elsewhere(self) -> None:
        """FASTACK elsewhere arrives as a deletion."""
        job = self.replicated(B)
        client = self.wait_for(job.id)
        self.receive_signal(B, DELJOB, job.id)
        self.assertEqual([Status(b"DELETED")], self.replies(client))

    def test_known_acknowledgement(self) -> None:
        """A job that is done, but not forgotten, answers at once."""
        job = self.replicated(B)
        self.node.acknowledge([job.id])
        self.assertEqual([Status(b"ACKED")], self.replies(self.wait_for(job.id)))

    def test_moved(self) -> None:
        """A job with RETRY 0 that moves to another node has not ended."""
        for _ in range(2):
            job_id = self.add(replicate=1, retry_s=0)
        client = self.wait_for(b"D-aaaaaaaa-%024d-05a0" % 1)
        self.assertNotEqual(b"", job_id)
        self.receive(B, QueueSignal(NEEDJOBS, b"q", 1))
        line = b"NOJOB Job not known any more in the context of this node."
        self.assertEqual([Error(line)], self.replies(client))


class ThreeNodesTests(PeerCase):
    """The limits of a question."""

    peers = (B, C, D)

    def test_without_links(self) -> None:
        """Nodes that cannot be reached are missing at once."""
        client = self.connect()
        self.node.queue_queries.count_jobs(client, b"q", True)
        (found,) = self.replies(client)
        assert isinstance(found, dict)
        self.assertEqual([B, C, D], found[b"nodes-missing"])
