"""Log lines about other nodes and unknown nodes."""

from __future__ import annotations

from disque_tx.messages.nodes import FAIL, HANDSHAKE, LEAVING, NOADDR, PFAIL, NodeEntry
from disque_tx.services.bus.clusterlog import ClusterLog, StrangerLog
from disque_tx.services.machine.log import DaemonLog
from tests.services.nodebench import NodeCase

OTHER = b"b" * 40
NAME = f"Node {OTHER.decode()} (10.0.0.2:7711)"


class ClusterLogTests(NodeCase):
    """One node joins, changes, and leaves."""

    def setUp(self) -> None:
        super().setUp()
        self.lines: list[str] = []
        log = DaemonLog("notice", self.mktemp(), lambda level, text: self.lines.append(text))
        self.membership = self.node.membership
        self.cluster_log = ClusterLog(self.node, log)
        self.entry = NodeEntry(OTHER, b"10.0.0.2", 7711, 0, 0)
        self.membership.add(self.entry)
        self.cluster_log.update()

    def log_lines(self, flags: int) -> list[str]:
        """The lines that are logged when the node has these flags from now on."""
        self.lines.clear()
        self.entry.flags = flags
        self.cluster_log.update()
        return self.lines

    def test_comes_and_goes(self) -> None:
        """A member's arrival and removal are logged once each."""
        self.assertEqual([f"{NAME} is a member of the cluster"], self.lines)
        self.assertEqual([], self.log_lines(0))
        self.membership.remove(self.entry)
        self.assertEqual(
            [f"Node {OTHER.decode()} is no longer a member of the cluster"], self.log_lines(0)
        )

    def test_failure(self) -> None:
        """Each step of a failure is logged with its meaning."""
        self.assertEqual([f"{NAME} does not answer"], self.log_lines(PFAIL))
        failed = f"{NAME} failed: a majority of the nodes does not reach it"
        self.assertEqual([failed], self.log_lines(FAIL))
        self.assertEqual([f"{NAME} is back"], self.log_lines(0))
        self.log_lines(PFAIL)
        self.assertEqual([f"{NAME} answers again"], self.log_lines(0))

    def test_clocks(self) -> None:
        """Whose clock differs from those of most others is logged once, with what to do."""
        third = NodeEntry(b"c" * 40, b"10.0.0.3", 7711, 0, 0)
        self.membership.add(third)
        self.cluster_log.update()
        self.lines.clear()
        self.node.begin(1_000, self.node.wall_us)
        for entry, ahead_ms in ((self.entry, 60_000), (third, 60_000)):
            entry.clock_ms = self.membership.unix_ms + ahead_ms
            entry.clock_seen_ms = 1_000
        self.cluster_log.update()
        (line,) = self.lines
        self.assertIn("The clock of this node is 60 s behind those of most other nodes", line)
        self.assertEqual([], self.log_lines(0))
        self.node.begin(3_000, self.node.wall_us)
        third.clock_ms = self.entry.clock_ms = self.membership.unix_ms
        self.assertEqual(
            ["The clock of this node agrees with those of most other nodes again"],
            self.log_lines(0),
        )
        self.node.begin(5_000, self.node.wall_us)
        self.entry.clock_ms = third.clock_ms = self.membership.unix_ms
        third.clock_ms += 60_000
        (line,) = self.log_lines(0)
        self.assertIn(f"The clock of node {third.id.decode()} differs by seconds", line)

    def test_another_address(self) -> None:
        """Both the old and the new address of a node are logged."""
        self.entry.ip = b"fd00::2"
        (line,) = self.log_lines(0)
        self.assertEqual(
            f"Node {OTHER.decode()} ([fd00::2]:7711) has a new address, it was 10.0.0.2:7711", line
        )

    def test_address_lost(self) -> None:
        """When another node answers at a node's address, that address is logged."""
        self.entry.ip, self.entry.port = b"", 0
        (line,) = self.log_lines(NOADDR)
        self.assertTrue(line.startswith(f"{NAME} is not where it was: another node"), line)
        self.entry.ip, self.entry.port = b"10.0.0.2", 7711
        self.assertEqual([f"{NAME} has an address again"], self.log_lines(0))

    def test_leaving(self) -> None:
        """A node starts to leave, or changes its mind."""
        self.assertEqual([f"{NAME} is leaving the cluster"], self.log_lines(LEAVING))
        self.assertEqual([f"{NAME} stays in the cluster"], self.log_lines(0))

    def test_twin(self) -> None:
        """Two processes with one ID: all three nodes log it, with addresses and advice; once a
        minute, because it may take long to resolve."""
        self.entry.contested, self.entry.duplicate_ip = True, b"10.0.0.9"
        (line,) = self.log_lines(0)
        self.assertTrue(
            line.startswith(f"Node {OTHER.decode()} at 10.0.0.2:7711 has a duplicate"), line
        )
        self.assertIn("at 10.0.0.9", line)
        self.entry.contested = False
        identity = self.membership.identity
        identity.contested, identity.duplicate_ip = True, b"10.0.0.8"
        (line,) = self.log_lines(0)
        self.assertIn("the ID of this node", line)
        self.assertIn("at 10.0.0.8", line)
        identity.suspended = True
        self.assertEqual([], self.log_lines(0))
        self.node.begin(self.node.now_ms + 60_000, self.node.wall_us)
        (line,) = self.log_lines(0)
        self.assertTrue(line.startswith("This node stands aside"), line)

    def test_myself(self) -> None:
        """A node logs its own leaving."""
        self.membership.set_leaving(True)
        (line,) = self.log_lines(0)
        self.assertTrue(line.startswith(f"Node {self.node.id.decode()} "), line)
        self.assertTrue(line.endswith(" is leaving the cluster"), line)

    def greeted(self, age_ms: int) -> NodeEntry:
        """A handshake of this age."""
        entry = NodeEntry(b"c" * 40, b"10.0.0.3", 7711, HANDSHAKE, self.node.now_ms - age_ms)
        self.membership.add(entry)
        self.assertEqual([], self.log_lines(0))
        return entry

    def test_answered(self) -> None:
        """A node that has answered and is forgotten at once is not said to be out of reach, nor is
        one whose handshake is still under way."""
        entry = self.greeted(15_001)
        self.assertEqual([], self.log_lines(0))
        entry.flags = 0
        self.membership.remove(entry)
        self.assertEqual([], self.log_lines(0))

    def test_no_answer(self) -> None:
        """A handshake is not logged as a member; if it gets no reply, that is logged at its end."""
        self.membership.remove(self.greeted(15_001))
        (line,) = self.log_lines(0)
        self.assertTrue(line.startswith("No node answered at 10.0.0.3:7711. "), line)
        self.assertEqual([], self.log_lines(0))

    def test_tried_by_discovery(self) -> None:
        """Addresses that discovery tries again and again do not fill the log."""
        entry = self.greeted(15_001)
        entry.discovered = True
        self.log_lines(0)
        self.membership.remove(entry)
        self.assertEqual([], self.log_lines(0))

    def test_known_after_all(self) -> None:
        """A handshake that reached a known node is not logged as failed."""
        self.membership.remove(self.greeted(500))
        self.assertEqual([], self.log_lines(0))

    def test_other_cluster(self) -> None:
        """A node of another cluster is named once a minute, with its address and the reason."""
        for seconds in (0, 59.999, 60):
            self.node.begin(1_000 + int(seconds * 1_000), self.node.wall_us)
            self.membership.cluster_name.refuse(b"e" * 40, b"10.0.0.9")
            self.lines.clear()
            self.cluster_log.update()
            start = f"Cluster bus, node {'e' * 40} at 10.0.0.9: refused, because it has another"
            expected = [] if seconds == 59.999 else [start]
            self.assertEqual(expected, [line[: len(start)] for line in self.lines])


class StrangerLogTests(NodeCase):
    """How often unknown nodes are logged."""

    def test_rate(self) -> None:
        """One line per address in ten seconds."""
        complaints = StrangerLog(self.log, "Cluster bus")
        for now_ms in (0, 1, 9_999, 10_000):
            complaints.warn("10.0.0.1", f"at {now_ms}", now_ms)
        complaints.warn("10.0.0.2", "at 1", 1)
        lines = [line.split(" # ")[1] for line in self.logged().splitlines()]
        about = "Cluster bus, 10.0.0."
        self.assertEqual([f"{about}1: at 0", f"{about}1: at 10000", f"{about}2: at 1"], lines)

    def test_many(self) -> None:
        """Many different addresses do not use unbounded memory."""
        complaints = StrangerLog(self.log, "Cluster bus")
        for number in range(1_001):
            complaints.warn(str(number), "x", 0)
        complaints.warn("0", "y", 1)
        self.assertIn("Cluster bus, 0: y", self.logged())
