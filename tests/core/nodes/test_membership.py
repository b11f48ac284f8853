"""The node table and its changes."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.core.admission.forgetting import BLACKLIST_MS
from disque_tx.core.nodes.membership import (
    Membership,
    membership_from_file,
    priority,
)
from disque_tx.errors import LocalError
from disque_tx.messages.bus import BusSink
from disque_tx.messages.nodes import (
    FAIL,
    HANDSHAKE,
    LEAVING,
    MEET,
    MYSELF,
    NOADDR,
    PFAIL,
    Link,
    NodeEntry,
    flags_text,
    parse_flags,
)

ME = b"a" * 40
PEER = b"B" * 40


class NumberedNodeIds:
    """Node IDs that count upwards."""

    def __init__(self) -> None:
        self.made = 0

    def __call__(self) -> bytes:
        self.made += 1
        return b"%040x" % self.made


def table(*flags: int) -> Membership:
    """This node, and one other node per argument with these flags."""
    membership = Membership(NodeEntry(ME, b"", 7711, MYSELF, 0), NumberedNodeIds())
    for number, bits in enumerate(flags):
        membership.add(NodeEntry(b"%040d" % number, b"10.0.0.%d" % number, 7711, bits, 0))
    return membership


class HandshakeTests(SynchronousTestCase):
    """MEET and its timeout."""

    def test_meet_adds_a_stand_in(self) -> None:
        """The peer is listed at once under a random ID, but does not count as a member."""
        membership = table()
        self.assertEqual(0, membership.messages_ignored)
        self.assertEqual(True, membership.meet(b"10.0.0.1", 7711, 0, 5))
        entry = membership.nodes[b"%040x" % 1]
        self.assertEqual(
            (b"10.0.0.1", 7711, HANDSHAKE | MEET, 5),
            (entry.ip, entry.port, entry.flags, entry.created_ms),
        )
        self.assertEqual(
            (2, 1, 0), (len(membership.nodes), membership.size, len(membership.reachable))
        )

    def test_meet_twice(self) -> None:
        """Repeating a MEET, however its address is written, does not pile up handshakes."""
        membership = table()
        membership.meet(b"::1", 7711, 0, 0)
        self.assertEqual(True, membership.meet(b"0:0:0:0:0:0:0:1", 7711, 0, 9))
        self.assertEqual(2, len(membership.nodes))
        membership.meet(b"::1", 7712, 0, 9)
        self.assertEqual(3, len(membership.nodes))

    def test_meet_at_a_known_address(self) -> None:
        """At the address of a member there may be another node now, so a handshake is needed."""
        membership = table()
        membership.meet(b"10.0.0.1", 7711, 0, 5)
        membership.complete(membership.nodes[b"%040x" % 1], PEER)
        membership.meet(b"10.0.0.1", 7711, 0, 9)
        self.assertEqual((3, 1), (len(membership.nodes), membership.handshakes))

    def test_meet_bus_port(self) -> None:
        """The same address with another bus port is another handshake; the usual one may be
        omitted."""
        membership = table()
        for bus_port in (0, 17_711, 9_000):
            self.assertEqual(True, membership.meet(b"::1", 7711, bus_port, 0))
        others = [e for e in membership.nodes.values() if e is not membership.myself]
        self.assertEqual([0, 9_000], [entry.bus_port for entry in others])
        self.assertEqual(2, membership.handshakes)

    def test_met(self) -> None:
        """A peer that introduced itself is contacted, but is not sent an introduction."""
        membership = table()
        membership.meet(b"10.0.0.1", 7711, 0, 5)
        self.assertEqual(True, membership.introduce(b"10.0.0.1", 7711, 0, 5))
        self.assertEqual(True, membership.introduce(b"10.0.0.2", 7711, 0, 5))
        self.assertEqual(HANDSHAKE, membership.nodes[b"%040x" % 2].flags)
        self.assertEqual(3, len(membership.nodes))

    def test_complete(self) -> None:
        """The temporary entry becomes the node itself, so references to it stay valid."""
        membership = table()
        membership.meet(b"10.0.0.1", 7711, 0, 5)
        membership.saved()
        entry = membership.nodes[b"%040x" % 1]
        membership.complete(entry, PEER)
        self.assertEqual({ME, PEER}, set(membership.nodes))
        self.assertIs(entry, membership.nodes[PEER])
        self.assertEqual((PEER, 0), (entry.id, entry.flags))
        self.assertEqual(
            (2, 0, [entry]), (membership.size, membership.handshakes, membership.reachable)
        )
        self.assertEqual(True, membership.changed)
        membership.meet(b"10.0.0.2", 7711, 0, 5)
        with self.assertRaises(LocalError):
            membership.complete(membership.nodes[b"%040x" % 2], PEER)

    def test_meet_refuses(self) -> None:
        """An address whose bus port would be invalid is refused and leaves no trace."""
        membership = table()
        for ip, port in ((b"localhost", 7711), (b"::1", 0), (b"::1", 55536), (b"::1", -1)):
            self.assertEqual(False, membership.meet(ip, port, 0, 0))
        self.assertEqual((1, False), (len(membership.nodes), membership.changed))

    def test_expiry(self) -> None:
        """A peer that never answers disappears after the node timeout, but not before."""
        membership = table(0)
        membership.meet(b"::1", 7711, 0, 1000)
        self.assertEqual([], membership.expire_handshakes(3000, 2000))
        expired = membership.expire_handshakes(3001, 2000)
        self.assertEqual([b"::1"], [entry.ip for entry in expired])
        self.assertEqual([ME, b"%040d" % 0], list(membership.nodes))

    def test_expiry_has_a_floor(self) -> None:
        """Even a tiny node timeout leaves a handshake one second."""
        membership = table()
        membership.meet(b"::1", 7711, 0, 0)
        self.assertEqual([], membership.expire_handshakes(1000, 1))
        self.assertEqual(1, len(membership.expire_handshakes(1001, 1)))


class CountTests(SynchronousTestCase):
    """Which nodes count as members and as reachable."""

    def test_size_and_reachable(self) -> None:
        """Failed and leaving nodes are members, but no copies are sent to them."""
        membership = table(0, PFAIL, FAIL, LEAVING, NOADDR, HANDSHAKE)
        self.assertEqual(6, membership.size)
        self.assertEqual([b"10.0.0.0"], [entry.ip for entry in membership.reachable])

    def test_priority(self) -> None:
        """Clients are directed to healthy nodes first; the worst flag decides."""
        up = NodeEntry(PEER, b"::1", 1, 0, 0)
        up.link = Link(BusSink(), up, b"::1", b"::1", 0, 1)
        self.assertEqual(1, priority(up))
        up.flags = LEAVING | PFAIL
        self.assertEqual(100, priority(up))
        expected = ((MYSELF, 1), (0, 5), (PFAIL, 10), (FAIL, 100), (MYSELF | LEAVING, 100))
        for flags, value in expected:
            self.assertEqual(value, priority(NodeEntry(PEER, b"::1", 1, flags, 0)), flags)


class ChangeTests(SynchronousTestCase):
    """FORGET, RESET and LEAVING."""

    def test_forget(self) -> None:
        """A forgotten node is gone and is not added by gossip for a minute, in any letter case."""
        membership = table()
        membership.add(NodeEntry(PEER, b"::1", 1, 0, 0))
        self.assertEqual(PEER, membership.forget(PEER, 100).id)
        self.assertEqual([ME], list(membership.nodes))
        self.assertEqual((1, []), (membership.size, membership.reachable))
        self.assertEqual(True, membership.changed)
        self.assertEqual(True, membership.blacklisted(PEER.lower(), 100 + BLACKLIST_MS - 1))
        self.assertEqual(False, membership.blacklisted(PEER, 100 + BLACKLIST_MS))

    def test_forgotten_witness(self) -> None:
        """The failure reports of a node that is no longer a member do not count."""
        membership = table(0, PFAIL)
        witness, suspect = (membership.nodes[b"%040d" % number] for number in (0, 1))
        suspect.reports[witness.id] = 5
        membership.forget(witness.id, 9)
        self.assertEqual({}, suspect.reports)

    def test_forget_wrong(self) -> None:
        """Neither this node nor an unknown node can be forgotten."""
        membership = table()
        for node_id in (ME, PEER):
            with self.assertRaises(LocalError):
                membership.forget(node_id, 0)

    def test_soft_reset(self) -> None:
        """All other nodes go; ID, leaving flag and blacklist stay, and the nodes file is saved."""
        membership = table(0, HANDSHAKE, 0)
        membership.forget(b"%040d" % 2, 0)
        membership.set_leaving(True)
        self.assertEqual([b"10.0.0.0", b"10.0.0.1"], [e.ip for e in membership.reset(False)])
        self.assertEqual([ME], list(membership.nodes))
        self.assertEqual((1, []), (membership.size, membership.reachable))
        self.assertEqual(True, membership.leaving)
        self.assertEqual(True, membership.blacklisted(b"%040d" % 2, 1))
        self.assertEqual((True, True), (membership.changed, membership.must_sync))

    def test_hard_reset(self) -> None:
        """The node gets a new ID everywhere."""
        membership = table(0)
        membership.reset(True)
        fresh = b"%040x" % 1
        self.assertEqual([fresh], list(membership.nodes))
        self.assertEqual((fresh, (fresh,)), (membership.myself.id, membership.only_me))

    def test_leaving(self) -> None:
        """Leaving can be undone, and every change is saved to the nodes file."""
        membership = table()
        membership.set_leaving(True)
        self.assertEqual((True, True), (membership.leaving, membership.changed))
        membership.saved()
        self.assertEqual(False, membership.changed)
        membership.set_leaving(False)
        self.assertEqual((False, True), (membership.leaving, membership.changed))

    def test_add_twice(self) -> None:
        """One ID is one node: a second entry for it would split the peer in two."""
        membership = table(0)
        for entry in (NodeEntry(b"%040d" % 0, b"", 0, 0, 0), NodeEntry(PEER, b"", 0, MYSELF, 0)):
            with self.assertRaises(LocalError):
                membership.add(entry)


class OwnAddressTests(SynchronousTestCase):
    """The address of this node."""

    def test_learnt(self) -> None:
        """The address at which others reach this node becomes its address, and is saved."""
        membership = table()
        membership.learn_ip(b"")
        self.assertEqual(False, membership.changed)
        membership.learn_ip(b"10.1.1.1")
        self.assertEqual((b"10.1.1.1", True), (membership.myself.ip, membership.changed))

    def test_announced(self) -> None:
        """Behind a gateway only the operator knows the address; a detected one would be wrong."""
        membership = table()
        membership.announce(b"192.0.2.7", 8000, 9000)
        membership.learn_ip(b"10.1.1.1")
        mine = membership.myself
        self.assertEqual((b"192.0.2.7", 8000, 9000), (mine.ip, mine.port, mine.bus_port))
        self.assertEqual(b"192.0.2.7", membership.announced_ip)

    def test_announced_no_more(self) -> None:
        """Once the operator removes the setting, the address is detected again."""
        membership = table()
        membership.announce(b"192.0.2.7", 0, 0)
        membership.announce(b"", 0, 0)
        self.assertEqual((b"", b""), (membership.announced_ip, membership.myself.ip))
        membership.learn_ip(b"10.1.1.1")
        self.assertEqual(b"10.1.1.1", membership.myself.ip)

    def test_announced_nothing(self) -> None:
        """What is not configured stays as it was, and the usual bus port may be omitted."""
        membership = table()
        membership.learn_ip(b"10.1.1.1")
        membership.announce(b"", 0, 17_711)
        mine = membership.myself
        self.assertEqual((b"10.1.1.1", 7711, 0), (mine.ip, mine.port, mine.bus_port))


class FromFileTests(SynchronousTestCase):
    """The table at startup."""

    def test_new_node(self) -> None:
        """Without a file this is a new node, whose ID must survive a crash right after startup."""
        membership = membership_from_file([], 7711, NumberedNodeIds())
        self.assertEqual((b"%040x" % 1, 7711), (membership.myself.id, membership.myself.port))
        self.assertEqual((True, True), (membership.changed, membership.must_sync))

    def test_known_node(self) -> None:
        """ID and address come from the file, the port from the configuration."""
        entries = [NodeEntry(PEER, b"::1", 1, 0, 0), NodeEntry(ME, b"10.1.1.1", 9, MYSELF, 0)]
        membership = membership_from_file(entries, 7711, NumberedNodeIds())
        mine = membership.myself
        self.assertEqual((ME, b"10.1.1.1", 7711), (mine.id, mine.ip, mine.port))
        self.assertEqual((2, False), (membership.size, membership.changed))
        self.assertEqual([PEER], [entry.id for entry in membership.reachable])

    def test_own_line_missing(self) -> None:
        """When the node's own line was lost, it gets a new ID but still knows its peers."""
        membership = membership_from_file(
            [NodeEntry(PEER, b"::1", 1, 0, 0)], 7711, NumberedNodeIds()
        )
        self.assertEqual({b"%040x" % 1, PEER}, set(membership.nodes))
        self.assertEqual(b"%040x" % 1, membership.myself.id)
        self.assertEqual((True, True), (membership.changed, membership.must_sync))

    def test_two_of_me(self) -> None:
        """A file with two entries for this node is refused."""
        both = [NodeEntry(node_id, b"", 1, MYSELF, 0) for node_id in (ME, PEER)]
        with self.assertRaises(LocalError):
            membership_from_file(both, 7711, NumberedNodeIds())


class LineTests(SynchronousTestCase):
    """The text form of the table."""

    def test_nodes_text(self) -> None:
        """Tools parse these lines field by field, so their format is exact."""
        membership = table(PFAIL | LEAVING)
        other = membership.nodes[b"%040d" % 0]
        other.ping_sent_ms, other.pong_received_ms = 12, 34
        self.assertEqual(
            ME
            + b" :7711 myself 0 0 connected\n"
            + b"%040d" % 0
            + b" 10.0.0.0:7711 fail?,leaving 1012 1034 disconnected\n",
            membership.nodes_text(1000),
        )

    def test_flags(self) -> None:
        """Flag names keep their order, and flags without a name are omitted."""
        every = MYSELF | PFAIL | FAIL | HANDSHAKE | NOADDR | LEAVING
        text = b"myself,fail?,fail,handshake,noaddr,leaving"
        self.assertEqual(text, flags_text(every | MEET))
        self.assertEqual(every, parse_flags(text.upper()))
        self.assertEqual((b"noflags", 0), (flags_text(MEET), parse_flags(b"noflags")))

    def test_unknown_flag(self) -> None:
        """The error names the flag, which may come from a newer program."""
        with self.assertRaisesRegex(ValueError, "unknown flag 'master'"):
            parse_flags(b"myself,master")
