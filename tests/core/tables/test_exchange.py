"""The table of policies between nodes (cluster protocol, section 21.3)."""

from __future__ import annotations

from disque_tx.core.tables.exchange import ANSWERS_AT_ONCE, PULL_MS_MAX
from disque_tx.messages.bus import Gossip
from disque_tx.messages.bustypes import CAN_BULK, CAN_TABLES, PONG
from disque_tx.messages.tables import (
    CHANGES_MAX,
    Register,
    TableChange,
    TableDigest,
    TablePull,
)
from tests.core.peerbench import B, C, D, PeerCase


def register(value: bytes, counter: int = 1, name: bytes = b"ttl") -> Register:
    """A register of node B."""
    return Register(b"q", name, value, counter, B)


class ExchangeCase(PeerCase):
    """A node whose peers B and C have tables."""

    def setUp(self) -> None:
        super().setUp()
        for peer in (B, C):
            self.show(peer, CAN_TABLES)
        self.clear_sent()

    def show(self, peer: bytes, features: int) -> None:
        """A peer answers PONG on this node's link."""
        message = Gossip(PONG, [])
        message.sender, message.port = peer, 7711
        message.features, message.epoch = features, 7
        link = self.node.membership.nodes[peer].link
        assert link is not None
        self.node.receive(link, message)

    def set(self, value: bytes = b"5") -> None:
        """A client sets a policy here."""
        table = self.node.policy_table
        changes = table.plan_set(b"q", [(b"ttl", value)], self.node.id)
        table.apply(changes, 1)
        self.node.exchange.announce(changes)

    def digest(self) -> TableDigest:
        """Of this node's table."""
        registers = self.node.policy_table.registers
        return TableDigest(registers.digest, len(registers))

    def ttl(self) -> int:
        """What is in force for the queue; 0 if nothing is."""
        policy = self.node.policies.of(b"q")
        return 0 if policy is None else int(policy.ttl_s)


class ChangeTests(ExchangeCase):
    """TABLE CHANGE."""

    def test_announced(self) -> None:
        """A policy that is set at one node is in force at all of them a moment later."""
        self.set()
        for peer in (B, C):
            (message,) = self.sent_to(peer)
            assert isinstance(message, TableChange)
            self.assertEqual([b"5"], [one.value for one in message.registers])
            self.assertFalse(message.pulled)

    def test_many_announced(self) -> None:
        """More changes than one message holds reach the others, each once."""
        changes = [register(b"1", name=b"%05d" % number) for number in range(2 * CHANGES_MAX + 1)]
        self.node.exchange.announce(changes)
        parts = [one.registers for one in self.sent_to(B) if isinstance(one, TableChange)]
        self.assertEqual([CHANGES_MAX, CHANGES_MAX, 1], [len(part) for part in parts])
        self.assertEqual(changes, [one for part in parts for one in part])

    def test_never_to_others(self) -> None:
        """A node that has not shown tables, as an original, is sent nothing about them."""
        self.show(C, CAN_BULK)
        self.clear_sent()
        self.join(D)
        self.set()
        self.node.cluster.tick()
        self.receive(D, TablePull(b"", b""))
        self.receive(C, TableDigest(1, 1))
        for peer in (C, D):
            self.assertEqual([], [m for m in self.sent_to(peer) if not isinstance(m, Gossip)])

    def test_not_here(self) -> None:
        """A node that has no tables itself sends nothing either."""
        self.node.membership.features = CAN_BULK
        self.set()
        self.assertEqual([], self.sent_to(B))

    def test_taken(self) -> None:
        """What another node has changed is in force, unless something later is."""
        self.receive(B, TableChange([register(b"7", counter=9)]))
        self.assertEqual(7, self.ttl())
        self.receive(C, TableChange([register(b"6", counter=8)]))
        self.assertEqual(7, self.ttl())
        self.set()
        self.assertEqual(5, self.ttl())
        self.assertEqual(1, self.node.policy_table.received)

    def test_not_credible(self) -> None:
        """What no register can be is refused and counted, and the rest of the message is taken."""
        self.receive(B, TableChange([register(b"7", counter=1 << 50), register(b"8")]))
        self.assertEqual((8, 1), (self.ttl(), self.node.policy_table.refused.total))

    def test_unknown_kept(self) -> None:
        """What a later version has set is kept and passed on, but not used."""
        self.receive(B, TableChange([register(b"7", name=b"hue"), register(b"0")]))
        self.assertIsNone(self.node.policies.of(b"q"))
        self.assertEqual(2, len(self.node.policy_table.registers))

    def test_other_table(self) -> None:
        """Messages about tables that this version does not know change nothing."""
        for message in (TableChange([register(b"7")]), TableDigest(1, 1), TablePull(b"", b"")):
            message.table = 3
            self.receive(B, message)
        self.assertEqual((0, []), (self.ttl(), self.sent_to(B)))


class DigestTests(ExchangeCase):
    """TABLE DIGEST and TABLE PULL."""

    def test_on_first_pong(self) -> None:
        """A node that joins, or was away, can fetch the table as soon as a link to it is up."""
        self.set()
        self.clear_sent()
        self.unlink(B)
        self.link(B)
        self.show(B, CAN_TABLES)
        (message,) = self.sent_to(B)
        assert isinstance(message, TableDigest)
        self.assertEqual((1, self.digest().digest), (message.registers, message.digest))

    def test_with_ping(self) -> None:
        """Every PING comes with the digest, so a message that was lost does not matter for long."""
        self.node.cluster.tick()
        kinds = [type(m) for peer in (B, C) for m in self.sent_to(peer)]
        self.assertIn(Gossip, kinds)
        self.assertEqual(kinds.count(Gossip), kinds.count(TableDigest))

    def test_same(self) -> None:
        """Nothing is asked for while the tables are the same."""
        self.set()
        self.clear_sent()
        self.receive(B, self.digest())
        self.assertEqual([], self.sent_to(B))

    def test_pull(self) -> None:
        """A table that differs is fetched a message at a time, to its end."""
        self.receive(B, TableDigest(1, 2))
        self.assertEqual((b"", b""), self.pulled(B))
        self.receive(B, TableChange([register(b"7")], True))
        self.assertEqual((b"q", b"ttl"), self.pulled(B))
        self.receive(B, TableChange([register(b"1", name=b"retry")], True, True))
        self.assertEqual([], self.sent_to(B))
        self.assertEqual(7, self.ttl())

    def pulled(self, peer: bytes) -> tuple[bytes, bytes]:
        """Behind which key registers are asked for."""
        (message,) = self.sent_to(peer)
        assert isinstance(message, TablePull)
        return message.pattern, message.name

    def test_one_at_a_time(self) -> None:
        """A node that joins does not fetch the same table from all others at once; a pull that is
        not answered does not keep it from asking another one."""
        self.receive(B, TableDigest(1, 2))
        self.receive(C, TableDigest(1, 2))
        self.assertEqual([], self.sent_to(C))
        self.pass_ms(PULL_MS_MAX)
        self.receive(C, TableDigest(1, 2))
        self.assertEqual((b"", b""), self.pulled(C))
        self.receive(B, TableChange([register(b"7")], True))
        self.assertEqual([TablePull], [type(message) for message in self.sent_to(B)])

    def test_in_vain(self) -> None:
        """A pull that brought nothing is not repeated with every heartbeat; one that brought
        something may be, at once."""
        self.set()
        self.clear_sent()
        asked = 0
        for _ in range(30):
            self.receive(B, TableDigest(1, 1))
            if self.sent_to(B):
                asked += 1
                self.receive(B, TableChange([], True, True))
            self.pass_ms(1_000)
        self.assertEqual(5, asked)
        self.receive(B, self.digest())
        self.receive(B, TableDigest(1, 1))
        self.assertEqual((b"", b""), self.pulled(B))
        self.receive(B, TableChange([register(b"7", counter=99)], True, True))
        self.receive(B, TableDigest(1, 1))
        self.assertEqual((b"", b""), self.pulled(B))

    def test_in_vain_after_news(self) -> None:
        """Each pull is judged by itself: one in vain is followed by a pause even when the one
        before brought something, and the pauses begin anew after one that did."""
        self.set()
        self.clear_sent()
        waited = []
        for number, news in enumerate((False, False, True, False, False)):
            waited.append(self.half_seconds())
            registers = [register(b"7", counter=number + 99)] if news else []
            self.receive(B, TableChange(registers, True, True))
        self.assertEqual([0, 2, 4, 0, 2], waited)

    def half_seconds(self) -> int:
        """How long it takes until B is asked, as its table differs."""
        waited = 0
        while True:
            self.receive(B, TableDigest(1, 1))
            if self.sent_to(B):
                return waited
            waited += 1
            self.pass_ms(500)

    def test_in_vain_after_same(self) -> None:
        """Once both tables are the same, the pauses begin anew."""
        self.set()
        self.clear_sent()
        waited = []
        for same in (False, False, True, False):
            waited.append(self.half_seconds())
            self.receive(B, TableChange([], True, True))
            if same:
                self.receive(B, self.digest())
        self.assertEqual([0, 2, 4, 0], waited)
        self.assertEqual(2, self.half_seconds())

    def test_empty(self) -> None:
        """There is nothing to fetch from an empty table."""
        self.set()
        self.clear_sent()
        self.receive(B, TableDigest(0, 0))
        self.assertEqual([], self.sent_to(B))

    def test_without_link(self) -> None:
        """A pull that cannot be asked for is given up."""
        self.unlink(B)
        self.receive(B, TableDigest(1, 2))
        self.receive(C, TableDigest(1, 2))
        self.assertEqual((b"", b""), self.pulled(C))

    def test_answer(self) -> None:
        """A large table leaves in bounded messages, the last of which says so."""
        for number in range(CHANGES_MAX + 1):
            name = b"%04d" % number
            self.receive(C, TableChange([register(b"1", name=name)]))
        self.receive(B, TablePull(b"", b""))
        self.receive(B, TablePull(b"q", b"%04d" % (CHANGES_MAX - 1)))
        first, second = self.sent_to(B)
        assert isinstance(first, TableChange) and isinstance(second, TableChange)
        self.assertEqual((CHANGES_MAX, True, False), shape(first))
        self.assertEqual((1, True, True), shape(second))
        self.pass_ms(1)
        for number, last in ((1, True), (CHANGES_MAX + 1, False)):
            more = [register(b"2", name=b"9%03d" % place) for place in range(number)]
            self.receive(C, TableChange(more))
            self.receive(B, TablePull(b"q", b"%04d" % (CHANGES_MAX - 1)))
            (rest,) = self.sent_to(B)
            assert isinstance(rest, TableChange)
            self.assertEqual(last, rest.last)
        self.receive(B, TablePull(b"zzz", b""))
        (nothing,) = self.sent_to(B)
        assert isinstance(nothing, TableChange)
        self.assertEqual((0, True, True), shape(nothing))

    def test_many_pulls(self) -> None:
        """A member that pulls without waiting for answers gets a few of them at a time, and the
        other members are answered meanwhile."""
        self.receive(C, TableChange([register(b"1")]))
        for _ in range(1_000):
            self.receive(B, TablePull(b"", b""))
        self.assertEqual(ANSWERS_AT_ONCE, len(self.sent_to(B)))
        self.receive(C, TablePull(b"", b""))
        self.assertEqual(1, len(self.sent_to(C)))
        self.pass_ms(1)
        self.assertEqual(1, len(self.sent_to(B)))
        self.pass_ms(1)
        self.assertEqual([], self.sent_to(B))
        self.receive(B, TablePull(b"", b""))
        self.assertEqual(1, len(self.sent_to(B)))

    def test_late_pulls(self) -> None:
        """What a member gets later counts as well: its next pulls of the same moment wait."""
        for _ in range(ANSWERS_AT_ONCE + 1):
            self.receive(B, TablePull(b"", b""))
        self.clear_sent()
        self.pass_ms(1)
        for _ in range(ANSWERS_AT_ONCE):
            self.receive(B, TablePull(b"", b""))
        self.assertEqual(ANSWERS_AT_ONCE, len(self.sent_to(B)))


def shape(message: TableChange) -> tuple[int, bool, bool]:
    """How many registers, and what it says about itself."""
    return len(message.registers), message.pulled, message.last
