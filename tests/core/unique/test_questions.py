"""Nodes ask each other for many keys at once."""

from __future__ import annotations

from collections import deque

from disque_tx.core.base.client import Client
from disque_tx.core.jobs.addrequest import Unique
from disque_tx.core.unique.claim import NoReceiver
from disque_tx.messages.bus import BusSink
from disque_tx.messages.bustypes import CAN_KEYS, KEY_ANSWER, KEY_RESERVE
from disque_tx.messages.keys import EACH, ENTRIES_MAX, FULL, GRANTED, HELD, KeyMessage
from disque_tx.messages.nodes import Link
from disque_tx.messages.records import NO_JOB_ID, KeyEntry
from disque_tx.wire.bus.parser import BusParser
from tests.core.bench import add_request
from tests.core.unique.keybench import A, B, C, D, KeyCase

_JOB_ID = b"D-" + b"x" * 38


class QuestionTests(KeyCase):
    """Three nodes: A adds jobs with keys that the others keep, B as the first one."""

    def names(self, count: int) -> list[bytes]:
        """Keys that B keeps, and C."""
        found = [b"%d" % number for number in range(12 * count)]
        return [name for name in found if self.keepers(name) == [B, C]][:count]

    def begin_all(self, names: list[bytes]) -> list[Client]:
        """ADDJOBs with these keys, in one turn."""
        return [self.begin_add(A, name, replicate=1) for name in names]

    def sent(self) -> list[KeyMessage]:
        """The questions that leave for B at the end of the turn; C gets the same."""
        self.cluster.finish()
        found: dict[bytes, list[KeyMessage]] = {B: [], C: []}
        for way, data in self.cluster.waiting:
            message = self.read(data)
            self.assertEqual(KEY_RESERVE, message.type)
            found[way.to].append(message)
        keys = [[[entry.key for entry in one.entries] for one in found[to]] for to in (B, C)]
        self.assertEqual(*keys)
        return found[B]

    def read(self, data: bytes) -> KeyMessage:
        """A message about keys."""
        parser = BusParser(1 << 20)
        parser.feed(data)
        message = parser.next()
        assert isinstance(message, KeyMessage)
        return message

    def answer(self, number: int, status: int, *entries: KeyEntry, by: bytes = B) -> None:
        """A gets an answer."""
        node = self.cluster.up[A]
        message = KeyMessage(KEY_ANSWER, number, status, list(entries))
        message.sender = by
        link = Link(BusSink(), None, b"10.0.0.2", b"", self.cluster.now_ms, 1)
        link.peer_id = by
        node.receive(link, message)

    def fresh(self, client: Client) -> int:
        """Whether the job of a client is new; -1 while it waits."""
        if not client.replies.values:  # type: ignore[attr-defined]
            return -1
        answer = self.reply(client)
        assert isinstance(answer, list) and isinstance(answer[1], int)
        return answer[1]

    def test_together(self) -> None:
        """All keys of a turn are in one message, up to the limit of one, and all jobs are made."""
        names = self.names(ENTRIES_MAX + 3)
        clients = self.begin_all(names)
        messages = self.sent()
        self.assertEqual([ENTRIES_MAX, 3], [len(message.entries) for message in messages])
        asked = [entry.key for message in messages for entry in message.entries]
        self.assertEqual(names, asked)
        self.cluster.settle()
        self.assertEqual({1}, {self.fresh(client) for client in clients})
        # Two questions each to B and C, and two answers each.
        self.assertEqual(4, self.cluster.log.count(KEY_ANSWER))

    def test_different_answers(self) -> None:
        """Each client gets the answer for its own key when these differ."""
        free, held, other, reserved = self.names(4)
        job_id = self.add(C, held, replicate=1)[0]
        first = self.begin_add(C, reserved, replicate=3)
        self.cluster.lost = {KEY_ANSWER}
        self.cluster.settle()
        self.cluster.lost = set()
        clients = self.begin_all([free, held, other, reserved])
        self.cluster.settle()
        self.assertEqual([1, 0, 1, -1], [self.fresh(client) for client in clients])
        self.assertEqual([job_id, 0], self.reply(clients[1]))
        self.cluster.run(1_000)
        self.assertEqual([self.reply(first)[0], 0], self.reply(clients[3]))  # type: ignore[index]

    def test_one_full(self) -> None:
        """The answer for each key is taken from its own place, an error, too."""
        one, other = self.begin_all(self.names(2))
        (message,) = self.sent()
        self.cluster.waiting.clear()
        granted = KeyEntry(b"", message.entries[0].job_id, GRANTED, 0, 0, 0)
        self.answer(message.number, EACH, granted, KeyEntry(b"", NO_JOB_ID, FULL, 0, 0, 0))
        self.cluster.run(400)
        self.assertEqual(1, self.fresh(one))
        self.assertTrue(self.error(other).startswith(b"OOM"))

    def test_node_of_an_earlier_version(self) -> None:
        """A node that takes one key in a message gets a message for each."""
        for node_id in (B, C):
            link = self.cluster.up[A].membership.nodes[node_id].link
            assert link is not None
            link.features = CAN_KEYS
        clients = self.begin_all(self.names(3))
        self.assertEqual([1, 1, 1], [len(message.entries) for message in self.sent()])
        self.cluster.settle()
        self.assertEqual([1, 1, 1], [self.fresh(client) for client in clients])

    def test_not_sent(self) -> None:
        """A client that is gone before the turn ends costs no message, and others go on."""
        gone, stays = self.begin_all(self.names(2))
        self.cluster.up[A].client_gone(gone)
        (message,) = self.sent()
        self.assertEqual([self.names(2)[1]], [entry.key for entry in message.entries])
        self.cluster.settle()
        self.assertEqual(1, self.fresh(stays))
        only = self.begin_all(self.names(3)[2:])
        self.cluster.up[A].client_gone(only[0])
        self.assertEqual([], self.sent())

    def test_one_gone(self) -> None:
        """A client that is gone while its key is asked for frees it, and the answers for the others
        are theirs."""
        names = self.names(3)
        clients = self.begin_all(names)
        self.sent()
        self.cluster.up[A].client_gone(clients[1])
        self.cluster.settle()
        self.assertEqual([1, -1, 1], [self.fresh(client) for client in clients])
        self.assertIsNone(self.cluster.up[B].keys.reservations.get(names[1]))
        self.assertEqual(1, self.add(C, names[1], replicate=1)[1])

    def test_asked_again(self) -> None:
        """What is not answered is asked again with the same number; an answer to either will do,
        and a later one has no effect."""
        (client,) = self.begin_all(self.names(1))
        (first,) = self.sent()
        self.cluster.deaf = {B}
        self.cluster.run(400)
        self.assertEqual(3, self.cluster.log.count(KEY_RESERVE))
        self.cluster.deaf = set()
        self.answer(first.number, GRANTED)
        self.cluster.settle()
        self.assertEqual(1, self.fresh(client))
        self.answer(first.number, FULL)
        self.assertEqual(1, self.fresh(client))

    def test_flushed(self) -> None:
        """A node that has forgotten all jobs adds none for its own parts when the answers arrive,
        and does not ask what it was about to ask."""
        node = self.cluster.up[A]
        request = add_request(b"q", b"body", ttl_s=3_600, replicate=1)
        request.unique = Unique(self.names(1)[0], 0, False)
        node.keys.add(NoReceiver(), request)
        (message,) = self.sent()
        self.cluster.waiting.clear()
        node.flush_all()
        for keeper in (B, C):
            for number in (message.number, message.number + 1):
                self.answer(number, GRANTED, by=keeper)
        node.keys.add(NoReceiver(), request)
        node.flush_all()
        self.assertEqual([], self.sent())
        self.assertEqual(0, len(node.jobs))

    def test_wrong_answers(self) -> None:
        """An answer of another node, to another question, or for another number of keys has no
        effect."""
        clients = self.begin_all(self.names(2))
        (message,) = self.sent()
        self.cluster.waiting.clear()
        taken = KeyEntry(b"", _JOB_ID, HELD, 0, 0, 0)
        self.answer(message.number, FULL, by=C)
        self.answer(message.number + 1, FULL)
        self.answer(message.number, EACH, taken)
        self.answer(message.number, EACH, taken, taken, taken)
        self.assertEqual([-1, -1], [self.fresh(client) for client in clients])
        self.cluster.run(1_000)
        self.assertEqual([1, 1], [self.fresh(client) for client in clients])

    def test_not_ready(self) -> None:
        """A node that does not answer for keys yet says so for all of them, without a job."""
        link = Link(BusSink(), None, b"10.0.0.1", b"", self.cluster.now_ms, 1)
        node = self.cluster.start(B, linked=False)
        for one, other in ((A, B), (B, A)):
            self.cluster.link(one, other)
        entries = [KeyEntry(name, _JOB_ID, HELD, 1, 0, 0) for name in (b"x", b"y")]
        message = KeyMessage(KEY_RESERVE, 7, 0, entries)
        message.sender = link.peer_id = A
        node.receive(link, message)
        answers = []
        for message in (self.read(data) for _, data in self.cluster.waiting):
            if message.type == KEY_ANSWER:
                answers.append((message.status, [(e.state, e.job_id) for e in message.entries]))
        self.assertEqual([(EACH, [(2, NO_JOB_ID), (2, NO_JOB_ID)])], answers)

    def test_empty_key(self) -> None:
        """A question with an empty key is ignored, as is one without keys."""
        node = self.cluster.up[B]
        link = Link(BusSink(), None, b"10.0.0.1", b"", self.cluster.now_ms, 1)
        link.peer_id = A
        good = KeyEntry(b"x", _JOB_ID, HELD, 1, 0, 0)
        for entries in ([good, KeyEntry(b"", _JOB_ID, HELD, 1, 0, 0)], []):
            message = KeyMessage(KEY_RESERVE, 7, 0, entries)
            message.sender = A
            node.receive(link, message)
        self.assertEqual([], list(self.cluster.waiting))
        self.assertEqual(0, len(node.keys))


class RaceTests(KeyCase):
    """Four nodes, of which two add a job with one key at the same time."""

    members = (A, B, C, D)

    def test_first_keeper_decides(self) -> None:
        """When each of two nodes has the grant of one keeper, the one that has that of the first
        keeper makes its job, without waiting for a time, once the other one has given back what
        the second keeper granted."""
        first, second = self.keepers()
        one, other = [node_id for node_id in self.members if node_id not in (first, second)]
        clients = [self.begin_add(node_id, replicate=1) for node_id in (one, other)]
        self.cluster.finish()
        # Each keeper gets the question of the other node first.
        self.cluster.waiting = deque(
            sorted(
                self.cluster.waiting,
                key=lambda sent: sent[0].by == (one, other)[sent[0].to == first],
            )
        )
        self.cluster.settle()
        answer = self.reply(clients[0])
        assert isinstance(answer, list)
        self.assertEqual(1, answer[1])
        self.cluster.run(100)
        self.assertEqual([answer[0], 0], self.reply(clients[1]))

    def test_first_keeper_is_the_node(self) -> None:
        """A node that is the first keeper itself asks the other one until that grants the key."""
        first, second = self.keepers()
        other = next(node_id for node_id in self.members if node_id not in (first, second))
        lost = self.begin_add(other, replicate=1)
        self.cluster.finish()
        self.cluster.waiting = deque(sent for sent in self.cluster.waiting if sent[0].to == second)
        self.cluster.settle()
        client = self.begin_add(first, replicate=1)
        self.cluster.settle()
        self.assertEqual([], client.replies.values)  # type: ignore[attr-defined]
        self.cluster.run(1_000)
        answer = self.reply(client)
        assert isinstance(answer, list)
        self.assertEqual(1, answer[1])
        self.assertEqual([answer[0], 0], self.reply(lost))
