"""CLUSTER on a node that has no peers yet."""

from __future__ import annotations

from disque_tx.commands.base.values import Status, ValueReplies
from disque_tx.commands.server.cluster import cluster
from disque_tx.errors import CommandError
from disque_tx.messages.bus import BusSink
from disque_tx.messages.nodes import HANDSHAKE, Link, NodeEntry
from tests.commands.desk import ME, NOW_MS, OK, UNIX_S, DeskCase
from tests.core.bench import add_request

PEER = b"b" * 40
WRONG = b"ERR Wrong CLUSTER subcommand or number of arguments"


class TableTests(DeskCase):
    """CLUSTER MYID, NODES and INFO."""

    def test_myid_and_nodes(self) -> None:
        """The node lists itself from the start."""
        self.assertEqual(ME, self.call(cluster, b"CLUSTER", b"myid"))
        expected = ME + b" :7711 myself 0 0 connected\n"
        self.assertEqual(expected, self.call(cluster, b"CLUSTER", b"NODES"))

    def test_times(self) -> None:
        """Times are shown as time of day, though they are measured by the monotonic clock."""
        entry = NodeEntry(PEER, b"::1", 7711, 0, 0)
        entry.pong_received_ms = NOW_MS - 3
        self.membership.add(entry)
        nodes = self.call(cluster, b"CLUSTER", b"NODES")
        assert isinstance(nodes, bytes)
        expected = PEER + b" ::1:7711 noflags 0 %d disconnected" % (UNIX_S * 1000 + 180)
        self.assertEqual(expected, nodes.splitlines()[1])

    def test_info(self) -> None:
        """Handshakes are known nodes, but neither part of the size nor reachable."""
        self.membership.add(NodeEntry(PEER, b"::1", 7711, 0, 0))
        self.membership.add(NodeEntry(b"c" * 40, b"::1", 7712, HANDSHAKE, 0))
        self.membership.messages_sent, self.membership.messages_received = 5, 6
        self.assertEqual(
            b"cluster_state:ok\r\n"
            b"cluster_known_nodes:3\r\n"
            b"cluster_reachable_nodes:1\r\n"
            b"cluster_size:2\r\n"
            b"cluster_stats_messages_sent:5\r\n"
            b"cluster_stats_messages_received:6\r\n",
            self.call(cluster, b"CLUSTER", b"INFO"),
        )


class MeetTests(DeskCase):
    """CLUSTER MEET."""

    def test_meet(self) -> None:
        """The reply comes at once, and the peer is listed once, as a handshake."""
        for _ in range(2):
            self.assertEqual(OK, self.call(cluster, b"CLUSTER", b"MEET", b"127.0.0.1", b"+7712"))
        nodes = self.call(cluster, b"CLUSTER", b"NODES")
        assert isinstance(nodes, bytes)
        line = b"%040x 127.0.0.1:7712 handshake 0 0 disconnected" % 1
        self.assertEqual([line], nodes.splitlines()[1:])

    def test_refused(self) -> None:
        """The error says whether the port or the whole address is invalid."""
        line = b"ERR Invalid TCP port specified: abc"
        self.assert_refused(line, cluster, b"CLUSTER", b"MEET", b"127.0.0.1", b"abc")
        for ip, port in (
            (b"1.2.3", b"1234"),
            (b"bad host", b"1234"),
            (b"two..dots", b"1234"),
            (b"a" * 254, b"1234"),
            (b"", b"1234"),
            (b"localhost", b"0"),
            (b"localhost", b"55536"),
            (b"127.0.0.1", b"0"),
            (b"127.0.0.1", b"55536"),
            (b"127.0.0.1", b"4294975008"),
        ):
            line = b"ERR Invalid node address specified: %s:%s" % (ip, port)
            self.assert_refused(line, cluster, b"CLUSTER", b"MEET", ip, port)
        self.assertEqual(1, len(self.membership.nodes))
        self.assertEqual([], self.node.outbox.resolves)

    def test_host_name(self) -> None:
        """A name is resolved after the reply, because that may take long."""
        for name in (b"node-1.example.com", b"db_2", b"10a"):
            self.assertEqual(OK, self.call(cluster, b"CLUSTER", b"MEET", name, b"7712"))
        expected = [(b"node-1.example.com", 7712), (b"db_2", 7712), (b"10a", 7712)]
        self.assertEqual(expected, self.node.outbox.resolves)
        self.assertEqual(1, len(self.membership.nodes))

    def test_bus_port(self) -> None:
        """With an explicit bus port the client port may exceed 55535."""
        words = [b"CLUSTER", b"MEET", b"::1", b"60000", b"61000"]
        self.assertEqual(OK, self.call(cluster, *words))
        entry = self.membership.nodes[b"%040x" % 1]
        self.assertEqual((60_000, 61_000), (entry.port, entry.bus_port))

    def test_bus_port_refused(self) -> None:
        """A bus port that is invalid, or would be ignored, is refused."""
        for text in (b"0", b"65536", b"x"):
            line = b"ERR Invalid bus port specified: " + text
            self.assert_refused(line, cluster, b"CLUSTER", b"MEET", b"::1", b"1", text)
        line = b"ERR A bus port can only be given with a literal address"
        self.assert_refused(line, cluster, b"CLUSTER", b"MEET", b"localhost", b"1", b"2")


class ForgetTests(DeskCase):
    """CLUSTER FORGET."""

    def test_forget(self) -> None:
        """The node is gone and stays away for a minute."""
        self.membership.add(NodeEntry(PEER, b"::1", 7711, 0, 0))
        self.assertEqual(OK, self.call(cluster, b"CLUSTER", b"FORGET", PEER))
        self.assertEqual([ME], list(self.membership.nodes))
        self.assertEqual(True, self.membership.blacklisted(PEER, NOW_MS + 59_999))

    def test_link(self) -> None:
        """The link to a forgotten node is closed."""
        entry = NodeEntry(PEER, b"::1", 7711, 0, 0)
        link = entry.link = Link(BusSink(), entry, b"::1", b"::1", NOW_MS, 1)
        self.membership.add(entry)
        self.assertEqual(OK, self.call(cluster, b"CLUSTER", b"FORGET", PEER))
        self.assertEqual([link], self.node.outbox.hangups)

    def test_refused(self) -> None:
        """Neither an unknown node nor this node can be forgotten."""
        for node_id, line in (
            (b"abc", b"ERR Invalid node identifier"),
            (PEER, b"ERR Unknown node " + PEER),
            (ME, b"ERR I tried hard but I can't forget myself..."),
        ):
            self.assert_refused(line, cluster, b"CLUSTER", b"FORGET", node_id)


class ResetTests(DeskCase):
    """CLUSTER RESET."""

    def setUp(self) -> None:
        super().setUp()
        self.membership.add(NodeEntry(PEER, b"::1", 7711, 0, 0))
        self.node.add_job(self.connect(b"x:1"), add_request(replicate=1))

    def test_soft(self) -> None:
        """Peers, jobs and queues are gone, waiting clients get a reply, the ID stays."""
        waiting = self.connect(b"x:2")
        self.node.get_jobs(waiting, [b"empty"], 1, 0, False, False)
        self.assertEqual(OK, self.call(cluster, b"CLUSTER", b"RESET"))
        self.assertEqual([ME], list(self.membership.nodes))
        self.assertEqual((0, 0), (len(self.node.jobs), len(self.node.queues)))
        assert isinstance(waiting.replies, ValueReplies)
        self.assertEqual([None], waiting.replies.values)

    def test_hard(self) -> None:
        """A hard reset makes it a new node with a new ID."""
        self.assertEqual(OK, self.call(cluster, b"CLUSTER", b"RESET", b"hard"))
        self.assertEqual(b"%040x" % 1, self.call(cluster, b"CLUSTER", b"MYID"))
        self.assertEqual(b"%040x" % 1, self.node.id)
        self.assertEqual(True, self.membership.must_sync)

    def test_refused(self) -> None:
        """A misspelled reset destroys nothing."""
        self.assert_refused(b"ERR syntax error", cluster, b"CLUSTER", b"RESET", b"FOO")
        self.assertEqual((2, 1), (len(self.membership.nodes), len(self.node.jobs)))


class SmallTests(DeskCase):
    """CLUSTER LEAVING and SAVECONFIG."""

    def test_leaving(self) -> None:
        """The flag is read and set by the same subcommand."""
        self.assertEqual(Status(b"no"), self.call(cluster, b"CLUSTER", b"LEAVING"))
        self.assertEqual(OK, self.call(cluster, b"CLUSTER", b"LEAVING", b"YES"))
        self.assertEqual(Status(b"yes"), self.call(cluster, b"CLUSTER", b"LEAVING"))
        self.assertEqual(OK, self.call(cluster, b"CLUSTER", b"LEAVING", b"no"))
        self.assertEqual(Status(b"no"), self.call(cluster, b"CLUSTER", b"LEAVING"))
        line = b"ERR Wrong argument for CLUSTER LEAVING. Use 'yes' or 'no'"
        self.assert_refused(line, cluster, b"CLUSTER", b"LEAVING", b"maybe")

    def test_evacuating(self) -> None:
        """With EVACUATE, or where the configuration says so, leaving moves the jobs away, until it
        is called off."""
        evacuation = self.node.evacuation
        self.assertEqual(OK, self.call(cluster, b"CLUSTER", b"LEAVING", b"yes"))
        self.assertFalse(evacuation.active)
        self.assertEqual(OK, self.call(cluster, b"CLUSTER", b"LEAVING", b"yes", b"EVACUATE"))
        self.assertTrue(evacuation.active)
        self.assertEqual(OK, self.call(cluster, b"CLUSTER", b"LEAVING", b"no"))
        self.assertFalse(evacuation.active)
        evacuation.automatic = True
        self.assertEqual(OK, self.call(cluster, b"CLUSTER", b"LEAVING", b"yes"))
        self.assertTrue(evacuation.active)
        line = b"ERR Only EVACUATE can follow CLUSTER LEAVING yes"
        self.assert_refused(line, cluster, b"CLUSTER", b"LEAVING", b"no", b"EVACUATE")

    def test_saveconfig(self) -> None:
        """OK means that the file is on disk; otherwise the error contains the reason."""
        self.assertEqual(OK, self.call(cluster, b"CLUSTER", b"SAVECONFIG"))
        self.assertEqual(["save nodes"], self.control.performed)
        text = "error saving the cluster node config: No space left on device"
        self.control.refusal = CommandError("ERR", text)
        self.assert_refused(b"ERR " + text.encode(), cluster, b"CLUSTER", b"SAVECONFIG")

    def test_wrong_words(self) -> None:
        """Unknown subcommands and wrong argument counts get the same error."""
        for words in ([b"FOO"], [b"MEET", b"::1"], [b"NODES", b"x"], [b"FORGET"]):
            self.assert_refused(WRONG, cluster, b"CLUSTER", *words)
