"""Several nodes: how they discover each other, detect failures, and which messages they accept."""

from __future__ import annotations

import json
from ipaddress import ip_network
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.messages.bus import Gossip, GossipEntry, JobSignal, Message, NodeFailed
from disque_tx.messages.bustypes import GOTJOB, MEET, PING, PONG, TYPE_NAMES
from disque_tx.messages.nodes import (
    FAIL,
    HANDSHAKE,
    LEAVING,
    MYSELF,
    NOADDR,
    PFAIL,
    Link,
    NodeEntry,
)
from tests.core.clusterbench import PORT, Net, Peer, Pipe

FLOWS = json.loads((Path(__file__).parent.parent / "vectors" / "flows.json").read_text())
T_MS = 15_000
STRANGER = b"e" * 40


def gossip_from(sender: bytes, kind: int, *entries: GossipEntry, port: int = PORT) -> Gossip:
    """A gossip message as the node with this ID would send it."""
    message = Gossip(kind, list(entries))
    message.sender, message.port = sender, port
    return message


class NetCase(SynchronousTestCase):
    """A cluster whose nodes all know each other, unless ``joined`` is false."""

    size = 3
    joined = True

    def setUp(self) -> None:
        self.net = Net(self.size)
        self.nodes = self.net.nodes
        if self.joined:
            self.net.join()
        self.first, self.second = self.nodes[:2]

    def flags(self, about: Peer) -> list[int]:
        """The flags that the other nodes hold for one node."""
        return [peer.flags_of(about) for peer in self.nodes if peer is not about]

    def accepted(self, peer_ip: bytes = b"10.0.0.99") -> Link:
        """A connection that the first node accepted."""
        return Link(Pipe(), None, peer_ip, self.first.ip, self.net.now_ms, 0)

    def receive(self, link: Link, message: Message) -> list[str]:
        """The first node receives a message; the types of all messages sent on the link."""
        self.first.receive(link, message, self.net.now_ms)
        return sent_types(link)

    def handshakes(self) -> list[NodeEntry]:
        """The handshakes that the first node has in progress."""
        return [e for e in self.first.membership.nodes.values() if e.flags & HANDSHAKE]


def sent_types(link: Link) -> list[str]:
    """The types of all messages sent on a link."""
    assert isinstance(link.sink, Pipe)
    return [TYPE_NAMES[message.type] for message in link.sink.sent]


class JoinTests(NetCase):
    """Two nodes form a cluster with the same messages as the original."""

    size = 2
    joined = False

    def flow(self, name: str) -> dict[tuple[str, str], list[str]]:
        """The types of the original's messages in order, by the owner of the link and the
        sender."""
        (flow,) = [flow for flow in FLOWS if flow["name"] == name]
        return self.by_link([self._event(event) for event in flow["events"]])

    def _event(self, event: dict[str, Any]) -> tuple[str, str, str]:
        return event["link"].split()[0], event["direction"].split()[0], event["type"]

    def by_link(self, events: list[tuple[str, str, str]]) -> dict[tuple[str, str], list[str]]:
        """The types alone, grouped by link and sender."""
        found: dict[tuple[str, str], list[str]] = {}
        for owner, sender, kind in events:
            found.setdefault((owner, sender), []).append(kind)
        return found

    def recorded(self, node: Peer, links: dict[str, int]) -> dict[tuple[str, str], list[str]]:
        """The types of the messages sent here, as many per link as the recording has."""
        names = {True: "C", False: "peer"}
        events = []
        for wire in self.net.wires:
            owner = names[wire.caller is node]
            ends = ((wire.there, wire.caller), (wire.back, wire.called))
            for pipe, sender in ends:
                for message in pipe.sent[: links.get(owner, 0)]:
                    events.append((owner, names[sender is node], TYPE_NAMES[message.type]))
        return self.by_link(events)

    def test_cluster_meet(self) -> None:
        """The introduction is a MEET, its PONG contains the ID, and PINGs follow in both
        directions."""
        self.first.meet(self.second, self.net.now_ms)
        self.net.run(1_500)
        expected = self.flow("join-by-cluster-meet")
        self.assertEqual(expected, self.recorded(self.first, {"C": 2, "peer": 1}))
        self.assertEqual(
            [0, 0], [self.first.flags_of(self.second), self.second.flags_of(self.first)]
        )

    def test_meet_received(self) -> None:
        """A node that received MEET connects back with a PING, not with another introduction."""
        self.second.meet(self.first, self.net.now_ms)
        self.net.run(300)
        expected = self.flow("join-by-meet-received")
        self.assertEqual(expected, self.recorded(self.first, {"C": 1, "peer": 1}))

    def test_addresses(self) -> None:
        """A node learns its own address from the node that introduced itself to it."""
        self.first.meet(self.second, self.net.now_ms)
        self.net.run(300)
        self.assertEqual(self.second.ip, self.second.membership.myself.ip)
        self.assertEqual(self.first.ip, self.second.membership.nodes[self.first.id].ip)

    def test_better_address(self) -> None:
        """A node that was known on its own host only learns the address at which a node of another
        host reaches it: others can use that one."""
        self.net.join()
        self.second.membership.myself.ip = b"127.0.0.1"
        self.net.run(5_000)
        self.assertEqual(self.second.ip, self.second.membership.myself.ip)

    def test_three_meets(self) -> None:
        """Repeating an introduction is harmless, on the command line and on the bus."""
        link = self.accepted()
        for _ in range(3):
            self.first.meet(self.second, self.net.now_ms)
            self.receive(link, gossip_from(STRANGER, MEET))
        self.assertEqual(["PONG"] * 3, sent_types(link))
        ips = sorted(entry.ip for entry in self.handshakes())
        self.assertEqual([self.second.ip, b"10.0.0.99"], ips)

    def test_met_from_both_sides(self) -> None:
        """Operators may introduce two nodes to each other at the same moment."""
        self.first.meet(self.second, self.net.now_ms)
        self.second.meet(self.first, self.net.now_ms)
        self.net.run(1_000)
        everybody = {self.first.id, self.second.id}
        self.assertEqual([everybody, everybody], [peer.known_ids() for peer in self.nodes])

    def test_known_after_meet(self) -> None:
        """A node that was met may know this one only after the first message: from a second one at
        once it learns who made the link, and takes jobs that come on it."""
        self.first.meet(self.second, self.net.now_ms)
        self.net.run(200)
        (wire,) = [wire for wire in self.net.wires if wire.caller is self.first]
        self.assertEqual([MEET, PING], [message.type for message in wire.there.sent])

    def test_meet_myself(self) -> None:
        """Meeting oneself ends at once and leaves nothing behind."""
        self.first.membership.learn_ip(self.first.ip)
        self.first.meet(self.first, self.net.now_ms)
        self.net.run(200)
        self.assertEqual({self.first.id}, self.first.known_ids())
        self.assertEqual([], self.net.wires)

    def test_no_node_there(self) -> None:
        """An address at which no node answers is given up after the node timeout."""
        self.net.kill(self.second)
        self.first.meet(self.second, self.net.now_ms)
        self.net.run(T_MS - 100)
        self.assertEqual(2, len(self.first.known_ids()))
        self.net.run(300)
        self.assertEqual({self.first.id}, self.first.known_ids())

    def test_unanswered_meet_is_repeated(self) -> None:
        """An introduction that is refused, for example by a rate limit, is tried again."""
        self.second.cluster.meet_allow = [ip_network("192.0.2.0/24")]
        self.first.meet(self.second, self.net.now_ms)
        self.net.run(3_000)
        self.assertEqual({self.second.id}, self.second.known_ids())
        self.second.cluster.meet_allow = []
        self.net.run(1_500)
        self.assertEqual(
            [0, 0], [self.first.flags_of(self.second), self.second.flags_of(self.first)]
        )

    def test_meet_resolved(self) -> None:
        """A host name becomes a handshake once its address is known."""
        resolved = self.first.cluster.meet_resolved(self.second.ip, PORT)
        self.assertEqual(True, resolved)
        self.net.run(300)
        self.assertEqual(0, self.first.flags_of(self.second))


class GossipTests(SynchronousTestCase):
    """Gossip spreads the whole node table."""

    @settings(max_examples=10)
    @given(st.integers(2, 7), st.integers(0, 2**16))
    def test_everybody(self, size: int, seed: int) -> None:
        """One introduction per node is enough, whatever the random choices are."""
        net = Net(size, seed)
        net.join()
        everybody = {peer.id for peer in net.nodes}
        for peer in net.nodes:
            self.assertEqual(everybody, peer.known_ids())
            self.assertEqual(size, peer.membership.size)
            self.assertEqual(size - 1, len(peer.membership.reachable))
            others = [e for e in peer.membership.nodes.values() if not e.flags & MYSELF]
            self.assertTrue(
                all(entry.numbers for entry in others),
                "nodes of this implementation recognize each other",
            )
        self.assertEqual(size * (size - 1), len(net.wires))


class DetectionTests(NetCase):
    """Missed heartbeats, suspicion, failure, recovery."""

    size = 5

    def test_suspected(self) -> None:
        """A silent node is suspected after the node timeout, not before, and gets no more
        copies."""
        silent = self.nodes[-1]
        silent.silent = True
        self.net.run(T_MS - 200)
        self.assertEqual([0] * 4, self.flags(silent))
        self.net.run(T_MS // 2 + 1_000)
        self.assertEqual([0] * 4, [flags & ~(PFAIL | FAIL) for flags in self.flags(silent)])
        self.assertNotIn(0, self.flags(silent))
        entry = self.first.membership.nodes[silent.id]
        self.assertNotIn(entry, self.first.membership.reachable)

    def test_failed(self) -> None:
        """Failure reports add up, and all nodes learn that the majority found the node failed."""
        self.nodes[-1].silent = True
        self.net.run(2 * T_MS)
        self.assertEqual([FAIL] * 4, self.flags(self.nodes[-1]))

    def test_killed(self) -> None:
        """A node that refuses connections is marked failed like one that is silent."""
        self.net.kill(self.nodes[-1])
        self.net.run(2 * T_MS)
        self.assertEqual([FAIL] * 4, self.flags(self.nodes[-1]))

    def test_failure_is_broadcast(self) -> None:
        """One node that sees a majority sends FAIL messages to all others."""
        self.nodes[-1].silent = True
        self.net.run(2 * T_MS)
        reported = [m.about for _, _, m in self.net.log if isinstance(m, NodeFailed)]
        self.assertEqual({self.nodes[-1].id}, set(reported))

    def test_return(self) -> None:
        """A node that comes back is a full member at once, for every other node."""
        peer = self.nodes[-1]
        peer.silent = True
        self.net.run(2 * T_MS)
        peer.silent = False
        self.net.run(2_500)
        self.assertEqual([0] * 4, self.flags(peer))
        self.assertEqual(4, len(self.first.membership.reachable))
        self.net.run(3 * T_MS)
        self.assertEqual([0] * 4, [peer.flags_of(other) for other in self.nodes[:-1]])

    def test_minority(self) -> None:
        """The smaller side of a partition suspects the larger one, but may not mark it failed."""
        for a in self.nodes[:2]:
            for b in self.nodes[2:]:
                self.net.cut(a, b)
        self.net.run(3 * T_MS)
        self.assertEqual([PFAIL] * 3, [self.first.flags_of(b) for b in self.nodes[2:]])
        self.assertEqual([FAIL] * 2, [self.nodes[4].flags_of(a) for a in self.nodes[:2]])
        self.net.heal()
        self.net.run(5_000)
        for peer in self.nodes:
            self.assertEqual([0] * 4, self.flags(peer))

    def test_one_bad_connection(self) -> None:
        """Two nodes that cannot reach each other mark no node failed: the others can reach both."""
        self.net.cut(self.first, self.second)
        self.net.run(4 * T_MS)
        self.assertEqual(PFAIL, self.first.flags_of(self.second))
        self.assertEqual([0] * 3, [peer.flags_of(self.second) for peer in self.nodes[2:]])

    def test_wall_clock(self) -> None:
        """A step of the wall clock by an hour makes no node suspect another."""
        for peer, step_ms in zip(self.nodes, (3_600_000, -3_600_000, 0, 9, -9), strict=True):
            peer.membership.unix_ms += step_ms
        self.net.run(2 * T_MS)
        for peer in self.nodes:
            self.assertEqual([0] * 4, self.flags(peer))
        self.assertEqual(5 * 4, len(self.net.wires))


class PairTests(NetCase):
    """A cluster of two nodes."""

    size = 2

    def test_never_failed(self) -> None:
        """One of two nodes cannot know which side is broken, so neither is marked failed."""
        self.second.silent = True
        self.net.run(10 * T_MS)
        self.assertEqual(PFAIL, self.first.flags_of(self.second))

    def test_stale_link(self) -> None:
        """A link without replies is replaced before its node is suspected of having failed."""
        link = self.first.membership.nodes[self.second.id].link
        self.net.run(T_MS)
        self.net.cut(self.first, self.second)
        self.net.run(T_MS // 2 + 2_000)
        self.assertEqual(0, self.first.flags_of(self.second) & FAIL)
        self.assertIsNot(link, self.first.membership.nodes[self.second.id].link)

    def test_ping_rate(self) -> None:
        """About one PING per second and direction: an idle cluster costs next to nothing."""
        before = len(self.net.log)
        self.net.run(60_000)
        self.assertIn(len(self.net.log) - before, range(200, 260))


class MemberTests(NetCase):
    """What messages from members change."""

    def member_link(self) -> Link:
        """The connection that the second node made to the first."""
        (wire,) = [w for w in self.net.wires if (w.caller, w.called) == (self.second, self.first)]
        return wire.far

    def test_leaving(self) -> None:
        """A node that leaves gets no copies, and may change its mind."""
        for leaving, flags in ((True, LEAVING), (False, 0)):
            self.second.membership.set_leaving(leaving)
            self.first.membership.saved()
            self.net.run(10_000)
            self.assertEqual([flags] * 2, self.flags(self.second))
            self.assertEqual(True, self.first.membership.changed)
            reachable = [entry.id for entry in self.first.membership.reachable]
            self.assertEqual(not leaving, self.second.id in reachable)

    def test_moved(self) -> None:
        """A node that connects from another address is contacted there; the old link is closed."""
        entry = self.first.membership.nodes[self.second.id]
        old = entry.link
        self.receive(self.accepted(b"10.0.0.77"), gossip_from(self.second.id, PING, port=8000))
        self.assertEqual((b"10.0.0.77", 8000, None), (entry.ip, entry.port, entry.link))
        self.assertEqual([old], self.first.outbox.hangups)
        self.assertEqual(True, self.first.membership.changed)

    def test_moved_on_ping_only(self) -> None:
        """Neither MEET nor PONG changes the address of a known node, as with the original."""
        entry = self.first.membership.nodes[self.second.id]
        for kind in (MEET, PONG):
            self.receive(self.accepted(b"10.0.0.77"), gossip_from(self.second.id, kind))
            self.assertEqual(self.second.ip, entry.ip)

    def test_announced(self) -> None:
        """The address that a node announces takes precedence over the one it connects from."""
        entry = self.first.membership.nodes[self.second.id]
        message = gossip_from(self.second.id, PING, port=60_000)
        message.ip, message.bus_port = b"192.0.2.1", 61_000
        self.receive(self.accepted(b"10.0.0.77"), message)
        self.assertEqual((b"192.0.2.1", 60_000, 61_000), (entry.ip, entry.port, entry.bus_port))

    def test_mapped_address(self) -> None:
        """A node that connects over an IPv6 socket has not moved."""
        entry = self.first.membership.nodes[self.second.id]
        self.receive(self.accepted(b"::ffff:" + self.second.ip), gossip_from(self.second.id, PING))
        self.assertEqual(self.second.ip, entry.ip)
        self.assertIsNotNone(entry.link)

    def test_impossible_port(self) -> None:
        """A port that cannot be connected to is not accepted."""
        self.receive(self.accepted(b"10.0.0.77"), gossip_from(self.second.id, PING, port=0))
        self.assertEqual(self.second.ip, self.first.membership.nodes[self.second.id].ip)

    def test_sign_of_life(self) -> None:
        """A node that sends a message is contacted at once, despite earlier failures to connect."""
        entry = self.first.membership.nodes[self.second.id]
        entry.attempts, entry.retry_ms = 5, self.net.now_ms + 2_000
        message = JobSignal(GOTJOB, b"j" * 40)
        message.sender = self.second.id
        self.assertEqual(True, self.first.cluster.bind(self.member_link(), message))
        self.assertEqual((0, 0), (entry.attempts, entry.retry_ms))

    def test_gossip_floods(self) -> None:
        """One member cannot make this node open connections to any number of addresses."""
        entries = [GossipEntry(b"%040x" % n, b"10.1.0.%d" % n, PORT, 0) for n in range(1, 201)]
        self.receive(self.member_link(), gossip_from(self.second.id, PING, *entries))
        self.assertEqual(64, len(self.handshakes()))

    def test_gossip_nonsense(self) -> None:
        """Invalid addresses, nodes without one, and this node itself start no handshake."""
        entries = [
            GossipEntry(b"1" * 40, b"host", PORT, 0),
            GossipEntry(b"2" * 40, b"10.1.1.1", 0, 0),
            GossipEntry(b"3" * 40, b"10.1.1.1", PORT, NOADDR),
            GossipEntry(self.first.id, b"10.1.1.1", PORT, FAIL),
        ]
        self.receive(self.member_link(), gossip_from(self.second.id, PING, *entries))
        self.assertEqual([], self.handshakes())
        self.assertEqual(MYSELF, self.first.membership.myself.flags)

    def test_failing_node_moved(self) -> None:
        """A node that fails here is tried at the address where others see it."""
        third = self.nodes[2]
        gossiped = GossipEntry(third.id, b"10.0.0.44", PORT, 0)
        self.receive(self.member_link(), gossip_from(self.second.id, PING, gossiped))
        self.assertEqual([], self.handshakes())
        self.first.membership.nodes[third.id].flags |= PFAIL
        self.receive(self.member_link(), gossip_from(self.second.id, PING, gossiped))
        self.assertEqual([b"10.0.0.44"], [entry.ip for entry in self.handshakes()])

    def test_report_withdrawn(self) -> None:
        """A node that is reported failing and then healthy has no failure reports left."""
        third = self.nodes[2]
        entry = self.first.membership.nodes[third.id]
        for flags, expected in ((PFAIL, {self.second.id: self.net.now_ms}), (0, {})):
            gossiped = GossipEntry(third.id, third.ip, PORT, flags)
            self.receive(self.member_link(), gossip_from(self.second.id, PING, gossiped))
            self.assertEqual(expected, entry.reports)
        self.assertEqual(0, entry.flags)

    def receive_failed(self, sender: bytes, about: bytes) -> None:
        """The first node receives a FAIL message."""
        message = NodeFailed(about)
        message.sender = sender
        self.first.cluster.failed(message)

    def test_verdict(self) -> None:
        """A member's FAIL message is accepted without further evidence; that of a stranger is
        ignored."""
        third = self.nodes[2]
        self.receive_failed(STRANGER, third.id)
        self.assertEqual(0, self.first.flags_of(third))
        self.receive_failed(self.second.id, third.id)
        self.assertEqual(FAIL, self.first.flags_of(third))
        self.receive_failed(self.second.id, self.first.id)
        self.receive_failed(self.second.id, STRANGER)
        self.assertEqual(MYSELF, self.first.membership.myself.flags)


class ForgetTests(NetCase):
    """CLUSTER FORGET and RESET while links exist."""

    def test_forget(self) -> None:
        """A forgotten node stays away for a minute, though others gossip about it and it is still
        running."""
        gone = self.nodes[2]
        self.first.cluster.forget(gone.id)
        self.net.run(55_000)
        self.assertNotIn(gone.id, self.first.known_ids())
        self.net.run(20_000)
        self.assertEqual(0, self.first.flags_of(gone))

    def test_meet_goes_before_blacklist(self) -> None:
        """CLUSTER MEET of a forgotten node overrides the blacklist."""
        gone = self.nodes[2]
        self.first.cluster.forget(gone.id)
        self.first.meet(gone, self.net.now_ms)
        self.net.run(500)
        self.assertEqual(0, self.first.flags_of(gone))

    def test_reset(self) -> None:
        """A reset node is alone; other nodes do not take it for the node with its old ID."""
        self.first.cluster.reset(True)
        old_id, self.first.id = self.first.id, self.first.membership.myself.id
        self.assertEqual(2, len(self.first.outbox.hangups))
        self.net.run(T_MS)
        self.assertEqual({self.first.id}, self.first.known_ids())
        self.assertEqual(NOADDR, self.second.membership.nodes[old_id].flags & NOADDR)


class ImposterTests(NetCase):
    """Peers that claim to be another node."""

    def test_my_own_id(self) -> None:
        """No other node may use the ID of this one."""
        link = self.accepted()
        self.assertEqual([], self.receive(link, gossip_from(self.first.id, PING)))
        self.assertEqual([link], self.first.outbox.hangups)

    def test_another_id(self) -> None:
        """A connection belongs to one node: messages with another ID on it close it."""
        for other in (self.nodes[2].id, STRANGER):
            link = self.accepted(self.second.ip)
            self.assertEqual(["PONG"], self.receive(link, gossip_from(self.second.id, PING)))
            self.assertEqual(["PONG"], self.receive(link, gossip_from(other, PING)))
            self.assertEqual(link, self.first.outbox.hangups[-1])

    def test_stranger_becomes_known(self) -> None:
        """A connection that begins as a stranger's continues once the node is known: this is how
        nodes join."""
        link = self.accepted(self.second.ip)
        self.receive(link, gossip_from(STRANGER, PING))
        self.assertEqual(["PONG", "PONG"], self.receive(link, gossip_from(self.second.id, PING)))
        self.assertEqual(self.second.id, link.peer_id)

    def test_wrong_answer(self) -> None:
        """When another node answers at an address, the entry loses that address."""
        entry = self.first.membership.nodes[self.second.id]
        link = entry.link
        assert link is not None
        self.first.receive(link, gossip_from(STRANGER, PONG), self.net.now_ms)
        self.assertEqual((NOADDR, b"", 0), (entry.flags, entry.ip, entry.port))
        self.assertEqual([link], self.first.outbox.hangups)

    def test_other_answer_while_met(self) -> None:
        """A new node at the address of a lost one may be met, and called for the lost one, at the
        same time. It would take what comes on the earlier link for late: that one is made anew."""
        entry = self.first.membership.nodes[self.second.id]
        link = entry.link
        assert link is not None
        self.first.membership.meet(entry.ip, PORT, 0, self.net.now_ms)
        (met,) = self.handshakes()
        earlier = met.link = Link(Pipe(), met, entry.ip, self.first.ip, 0, int(link.epoch) - 1)
        self.first.receive(link, gossip_from(STRANGER, PONG), self.net.now_ms)
        self.assertIsNone(met.link)
        self.assertEqual([link, earlier], self.first.outbox.hangups)

    def test_only_answers(self) -> None:
        """On links that we opened, everything except PONG is ignored."""
        link = self.first.membership.nodes[self.second.id].link
        assert link is not None
        message = gossip_from(self.second.id, PING)
        message.flags = LEAVING
        before = sent_types(link)
        self.assertEqual(before, self.receive(link, message))
        self.assertEqual(0, self.first.flags_of(self.second))

    def test_dropped_link(self) -> None:
        """A message that arrives on a link that was dropped is ignored."""
        entry = self.first.membership.nodes[self.second.id]
        link = entry.link
        assert link is not None
        entry.link = None
        entry.flags |= PFAIL
        self.receive(link, gossip_from(self.second.id, PONG))
        self.assertEqual(PFAIL, entry.flags)

    def test_unwritable_id(self) -> None:
        """A peer whose ID would corrupt the nodes file is not added."""
        self.first.membership.meet(b"10.0.0.99", PORT, 0, self.net.now_ms)
        (entry,) = self.handshakes()
        link = entry.link = Link(Pipe(), entry, b"10.0.0.99", self.first.ip, 0, 9)
        self.receive(link, gossip_from(b"a b\n" * 10, PONG))
        self.assertEqual([], self.handshakes())
        self.assertEqual(3, len(self.first.known_ids()))


class StrangerTests(NetCase):
    """MEET from unknown nodes."""

    def test_ping(self) -> None:
        """A stranger's PING is answered, because handshakes need it, and changes nothing."""
        self.first.membership.saved()
        self.assertEqual(["PONG"], self.receive(self.accepted(), gossip_from(STRANGER, PING)))
        self.assertEqual(3, len(self.first.known_ids()))
        self.assertEqual(False, self.first.membership.changed)

    def test_not_allowed(self) -> None:
        """A MEET from an address that is not on the list is counted and gets no reply."""
        self.first.cluster.meet_allow = [ip_network("10.0.0.0/29")]
        self.first.membership.myself.ip = b""
        self.assertEqual([], self.receive(self.accepted(), gossip_from(STRANGER, MEET)))
        self.assertEqual((3, b""), (len(self.first.known_ids()), self.first.membership.myself.ip))
        self.assertEqual(1, self.first.membership.meets_refused)
        self.assertEqual(
            ["PONG"], self.receive(self.accepted(b"10.0.0.5"), gossip_from(STRANGER, MEET))
        )

    def test_rate(self) -> None:
        """One address can introduce one node per second."""
        link = self.accepted()
        for port in (7001, 7002):
            self.receive(link, gossip_from(STRANGER, MEET, port=port))
        self.assertEqual(["PONG"], sent_types(link))
        self.assertEqual((1, 1), (len(self.handshakes()), self.first.membership.meets_refused))

    def test_many(self) -> None:
        """However many addresses introduce nodes, few handshakes run at the same time."""
        for number in range(100):
            self.receive(self.accepted(b"10.9.0.%d" % number), gossip_from(STRANGER, MEET))
        self.assertEqual((64, 36), (len(self.handshakes()), self.first.membership.meets_refused))

    def test_gossip(self) -> None:
        """Gossip entries from a stranger are ignored."""
        gossiped = GossipEntry(b"1" * 40, b"10.1.1.1", PORT, 0)
        self.receive(self.accepted(), gossip_from(STRANGER, MEET, gossiped))
        self.assertEqual([b"10.0.0.99"], [entry.ip for entry in self.handshakes()])

    def test_known_node_elsewhere(self) -> None:
        """A handshake that reaches a known node only updates its address."""
        entry = self.first.membership.nodes[self.second.id]
        self.first.membership.meet(b"10.0.0.88", PORT, 0, self.net.now_ms)
        (stand_in,) = self.handshakes()
        link = Link(Pipe(), stand_in, b"10.0.0.88", self.first.ip, self.net.now_ms, 9)
        self.first.cluster.link_up(stand_in, link)
        self.receive(link, gossip_from(self.second.id, PONG))
        self.assertEqual([], self.handshakes())
        self.assertEqual((b"10.0.0.88", None), (entry.ip, entry.link))
        self.assertIn(link, self.first.outbox.hangups)
