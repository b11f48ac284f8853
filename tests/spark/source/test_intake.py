"""What the driver of a stream says to nodes, and when."""

from __future__ import annotations

from disque_tx.client.errors import AuthenticationRefused, CannotConnect
from disque_tx.spark.source.intake import Intake
from disque_tx.spark.source.leases import Leases
from disque_tx.spark.source.offsets import Offset
from tests.client.scripted import HANG_UP, ScriptedNode
from tests.spark.nodes import GONE, IDS, NodesTestCase, at, got

_NONE = b"*-1\r\n"


class IntakeTests(NodesTestCase):
    """One or more scripted nodes."""

    def intake(self, *nodes: ScriptedNode, strict: bool = True) -> Intake:
        """A driver with these nodes."""
        return Intake(self.servers(*nodes), ["q"], Leases(), strict)

    def test_acknowledged_when_stored(self) -> None:
        """A batch is acknowledged when the next one is asked for, before anything is fetched, and
        only once."""
        node = self.node(GETJOB=[got(IDS[1]), _NONE], ACKJOB=b":1\r\n", WORKING=b":60\r\n")
        intake = self.intake(node)
        start = Offset(4, {at(node): IDS[:1]})
        end = intake.advance(start, 10)
        self.assertEqual(["ACKJOB", "GETJOB", "WORKING"], node.commands())
        self.assertEqual(Offset(5, {at(node): [IDS[1]]}), end)
        self.assertEqual(end, intake.advance(end, 10))
        intake.advance(end, 10)
        self.assertEqual(["ACKJOB", "GETJOB", "GETJOB"], node.commands()[3:])

    def test_replayed(self) -> None:
        """A batch that runs again is neither acknowledged nor fetched; its leases are renewed."""
        node = self.node(WORKING=b":60\r\n")
        intake = self.intake(node)
        intake.hold(Offset(5, {at(node): IDS[:2]}))
        intake.hold(Offset(5, {at(node): IDS[:2]}))
        self.assertEqual(["WORKING", "WORKING"], node.commands())

    def test_comes_again(self) -> None:
        """A job of the batch before, whose lease was over, is acknowledged and left out."""
        node = self.node(GETJOB=got(*IDS[:3]), ACKJOB=b":1\r\n", WORKING=b":60\r\n")
        end = self.intake(node).advance(Offset(2, {at(node): IDS[:1]}), 100)
        self.assertEqual({at(node): IDS[1:3]}, end.jobs)
        acknowledged = [words[1:] for words in node.requests if words[0] == b"ACKJOB"]
        self.assertEqual([[IDS[0].encode()], [IDS[0].encode()]], acknowledged)

    def test_comes_twice(self) -> None:
        """A job that comes twice while a batch is fetched, from one node or two, is in the batch
        once, and is not acknowledged before the batch is stored."""
        first = self.node(GETJOB=[got(*[IDS[0]] * 500), got(*IDS[:2])], WORKING=b":60\r\n")
        second = self.node(GETJOB=got(*IDS[1:3]), WORKING=b":60\r\n")
        end = self.intake(first, second).advance(Offset(), 2000)
        self.assertEqual({at(first): IDS[:2], at(second): IDS[2:3]}, end.jobs)
        self.assertNotIn("ACKJOB", first.commands() + second.commands())

    def test_limit(self) -> None:
        """Nodes share what a batch may hold."""
        nodes = self.cluster(3, GETJOB=_NONE)
        self.intake(*nodes).advance(Offset(), 10)
        counts = [node.requests[0][node.requests[0].index(b"COUNT") + 1] for node in nodes]
        self.assertEqual([b"4", b"5", b"10"], counts)

    def test_node_away(self) -> None:
        """The others go on, which is said once; when all are away that is an error."""
        dead, alive = self.node(), self.node(GETJOB=_NONE)
        dead.close()
        intake = self.intake(dead, alive)
        with self.assertLogs("disque_tx.spark.source.intake", "WARNING") as logged:
            for _ in range(2):
                self.assertEqual(Offset(), intake.advance(Offset(), 5))
        self.assertEqual(1, len(logged.output))
        alive.close()
        for work in (lambda: intake.advance(Offset(), 5), intake.waiting):
            with self.assertRaises(CannotConnect):
                work()

    def test_away_again(self) -> None:
        """A node that was back and goes away again is reported again."""
        shaky, alive = self.node(), self.node(GETJOB=_NONE)
        intake = self.intake(shaky, alive)
        with self.assertLogs("disque_tx.spark.source.intake", "WARNING") as logged:
            for said in (HANG_UP, HANG_UP, _NONE, HANG_UP):
                shaky.answer("GETJOB", said)
                intake.advance(Offset(), 5)
        self.assertEqual(2, len(logged.output))

    def test_acknowledged_elsewhere(self) -> None:
        """When the node that delivered is away, others are told that its jobs are done."""
        dead, alive = self.node(), self.node(ACKJOB=b":0\r\n", GETJOB=_NONE)
        dead.close()
        self.intake(dead, alive).advance(Offset(1, {at(dead): IDS[:2]}), 5)
        self.assertEqual(["ACKJOB", "ACKJOB", "GETJOB"], alive.commands())

    def test_left_out(self) -> None:
        """Told to go on without jobs of a node that is away, the driver acknowledges the others
        alone, takes those in a later batch when they come again, and leaves an offset without
        them, even if there is nothing to fetch."""
        away, alive = self.node(), self.node(GETJOB=_NONE, ACKJOB=b":1\r\n")
        away.close()
        intake = self.intake(away, alive, strict=False)
        offset = Offset(3, {at(away): IDS[:1], at(alive): IDS[1:2]})
        alive.answer("WORKING", GONE, b":60\r\n")
        with self.assertLogs("disque_tx.spark.source.intake", "WARNING"):
            intake.hold(offset)
            self.assertEqual({*IDS[1:2]}, intake.readable(offset).ids())
            end = intake.advance(offset, 10)
        self.assertEqual(Offset(4, {}), end)
        acknowledged = [words[1] for words in alive.requests if words[0] == b"ACKJOB"]
        self.assertEqual([IDS[1].encode()], acknowledged)
        alive.answer("GETJOB", got(IDS[0]))
        alive.answer("WORKING", b":60\r\n")
        self.assertEqual(Offset(5, {at(alive): IDS[:1]}), intake.advance(end, 10))

    def test_unknown_what_was_left_out(self) -> None:
        """After a restart, a query that may have left jobs out acknowledges nothing it did not
        see; a strict one knows that all are stored."""
        for strict, expected in ((False, []), (True, ["ACKJOB"])):
            node = self.node(GETJOB=_NONE, ACKJOB=b":1\r\n")
            self.intake(node, strict=strict).advance(Offset(3, {at(node): IDS[:1]}), 10)
            self.assertEqual([*expected, "GETJOB"], node.commands())

    def test_waiting(self) -> None:
        """What is available is what all nodes have queued."""
        self.assertEqual(10, self.intake(*self.cluster(2, QLEN=b":5\r\n")).waiting())

    def test_refused(self) -> None:
        """A node that wants a password ends the query."""
        node = self.node(GETJOB=b"-NOAUTH Authentication required.\r\n")
        with self.assertRaises(AuthenticationRefused):
            self.intake(node).advance(Offset(), 5)
