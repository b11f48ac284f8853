"""The requests of the driver of a stream, and their order."""

from __future__ import annotations

from disque_tx.spark.source.fetching import Limit
from disque_tx.spark.source.intake import StreamIntake
from disque_tx.spark.source.leases import SourceLeases
from disque_tx.spark.source.offsets import Offset
from tests.client.scripted import ScriptedNode
from tests.spark.nodes import GONE, IDS, NodesTestCase, address_of, fetched

_NONE = b"*-1\r\n"


def limit(jobs: int) -> Limit:
    """So many jobs, of any size."""
    return Limit(jobs, 1 << 30)


class IntakeTests(NodesTestCase):
    """One or more scripted nodes."""

    def intake(self, *nodes: ScriptedNode, strict: bool = True) -> StreamIntake:
        """A driver with these nodes."""
        fetching = self.fetching(*nodes)
        return StreamIntake(self.servers(*nodes), fetching, SourceLeases(), strict)

    def test_acknowledged_when_stored(self) -> None:
        """A batch is acknowledged when the next one is requested, before jobs are fetched, and only
        once."""
        node = self.node(GETJOB=[fetched(IDS[1]), _NONE], ACKJOB=b":1\r\n", WORKING=b":60\r\n")
        intake = self.intake(node)
        start = Offset(4, {address_of(node): IDS[:1]})
        end = intake.advance(start, limit(10))
        self.assertEqual(["ACKJOB", "GETJOB", "WORKING"], node.commands())
        self.assertEqual(Offset(5, {address_of(node): [IDS[1]]}), end)
        self.assertEqual(end, intake.advance(end, limit(10)))
        intake.advance(end, limit(10))
        self.assertEqual(["ACKJOB", "GETJOB", "GETJOB"], node.commands()[3:])

    def test_replayed(self) -> None:
        """A batch that runs again is neither acknowledged nor fetched; its leases are renewed."""
        node = self.node(WORKING=b":60\r\n")
        intake = self.intake(node)
        intake.hold(Offset(5, {address_of(node): IDS[:2]}))
        intake.hold(Offset(5, {address_of(node): IDS[:2]}))
        self.assertEqual(["WORKING", "WORKING"], node.commands())

    def test_redelivered(self) -> None:
        """A job of the previous batch that is delivered again is acknowledged and left out."""
        node = self.node(GETJOB=fetched(*IDS[:3]), ACKJOB=b":1\r\n", WORKING=b":60\r\n")
        end = self.intake(node).advance(Offset(2, {address_of(node): IDS[:1]}), limit(100))
        self.assertEqual({address_of(node): IDS[1:3]}, end.jobs)
        acknowledged = [words[1:] for words in node.requests if words[0] == b"ACKJOB"]
        self.assertEqual([[IDS[0].encode()], [IDS[0].encode()]], acknowledged)

    def test_acknowledged_elsewhere(self) -> None:
        """When the node that delivered is down, its jobs are acknowledged on other nodes."""
        dead, alive = self.node(), self.node(ACKJOB=b":0\r\n", GETJOB=_NONE)
        dead.close()
        self.intake(dead, alive).advance(Offset(1, {address_of(dead): IDS[:2]}), limit(5))
        self.assertEqual(["ACKJOB", "GETJOB"], alive.commands())

    def test_left_out(self) -> None:
        """With ``failOnDataLoss`` false, the driver leaves out jobs of a node that is down,
        acknowledges only the others, reads those later when they are delivered again, and returns
        an offset without them."""
        away, alive = self.node(), self.node(GETJOB=_NONE, ACKJOB=b":1\r\n")
        away.close()
        intake = self.intake(away, alive, strict=False)
        offset = Offset(3, {address_of(away): IDS[:1], address_of(alive): IDS[1:2]})
        alive.answer("WORKING", GONE, b":60\r\n")
        with self.assertLogs("disque_tx.spark.source.intake", "WARNING"):
            intake.hold(offset)
            self.assertEqual({*IDS[1:2]}, intake.readable(offset).ids())
            end = intake.advance(offset, limit(10))
        self.assertEqual(Offset(4, {}), end)
        acknowledged = [words[1] for words in alive.requests if words[0] == b"ACKJOB"]
        self.assertEqual([IDS[1].encode()], acknowledged)
        alive.answer("GETJOB", fetched(IDS[0]))
        alive.answer("WORKING", b":60\r\n")
        self.assertEqual(Offset(5, {address_of(alive): IDS[:1]}), intake.advance(end, limit(10)))

    def test_restart(self) -> None:
        """After a restart, a query that may have left out jobs acknowledges only jobs that it has
        seen; a strict one can acknowledge all."""
        for strict, expected in ((False, []), (True, ["ACKJOB"])):
            node = self.node(GETJOB=_NONE, ACKJOB=b":1\r\n")
            self.intake(node, strict=strict).advance(
                Offset(3, {address_of(node): IDS[:1]}), limit(10)
            )
            self.assertEqual([*expected, "GETJOB"], node.commands())

    def test_on_the_way(self) -> None:
        """A job that is on its way from one node to another is found when it has arrived; one that
        another consumer took is not looked for without an end."""
        node = self.node(GETJOB=[_NONE, _NONE, fetched(IDS[0]), _NONE], WORKING=b":60\r\n")
        intake = self.intake(node)
        pauses: list[float] = []
        end = intake.advance_to_queued(Offset(), limit(1), pauses.append)
        self.assertEqual(Offset(1, {address_of(node): IDS[:1]}), end)
        self.assertEqual(2, len(pauses))
        node.answer("ACKJOB", b":1\r\n")
        self.assertEqual(end, intake.advance_to_queued(end, limit(1), pauses.append))
        self.assertEqual(end, intake.advance_to_queued(end, limit(0), self.fail))
