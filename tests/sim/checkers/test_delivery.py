"""Delivery of jobs that are acknowledged or worked on."""

from __future__ import annotations

from disque_tx.sim.checkers.delivery import NotAfterAck, WorkingRespected
from tests.sim.checkers.bench import HERE, THERE, CheckerCase, S


class AckedTests(CheckerCase):
    """Delivery after ACKJOB."""

    def test_again(self) -> None:
        """No node delivers an acknowledged job after it can have received the acknowledgement."""
        self.request(b"ACKJOB", 1)
        self.deliver(1.01, THERE)
        self.assertEqual(0, self.found(NotAfterAck()))
        self.deliver(2, THERE)
        self.deliver(2, HERE)
        self.assertEqual(2, self.found(NotAfterAck()))

    def test_excuses(self) -> None:
        """Other nodes may be cut off; the node itself may have lost its memory; a reply of 0
        promises nothing."""
        self.request(b"ACKJOB", 1)
        self.deliver(2, THERE)
        self.deliver(2, HERE)
        self.fault("partition")
        self.assertEqual(1, self.found(NotAfterAck()))
        self.run_.machines[0]._since_us = 3 * S
        self.assertEqual(0, self.found(NotAfterAck()))
        self.history.job_requests[0].reply = 0
        self.run_.plan.history.clear()
        self.assertEqual(0, self.found(NotAfterAck()))

    def test_forgotten(self) -> None:
        """FASTACK on the same node drops the acknowledgement, too: another holder that was down
        delivers again. Without faults all have received it before."""
        self.request(b"ACKJOB", 1)
        self.deliver(9)
        self.request(b"FASTACK", 2, THERE)
        self.fault("partition")
        self.assertEqual(1, self.found(NotAfterAck()))
        self.request(b"FASTACK", 2)
        self.assertEqual(0, self.found(NotAfterAck()))
        self.run_.plan.history.clear()
        self.assertEqual(1, self.found(NotAfterAck()))

    def test_deleted_elsewhere(self) -> None:
        """DELJOB on another node may take the only knowledge of a holder: that holder is excused
        for its delivery, the node that answered ACKJOB is not."""
        self.request(b"ACKJOB", 1)
        self.deliver(3, THERE)
        self.request(b"DELJOB", 4, THERE)
        self.assertEqual(1, self.found(NotAfterAck()))
        self.request(b"DELJOB", 0.5, THERE)
        self.assertEqual(0, self.found(NotAfterAck()))
        self.deliver(3, HERE)
        self.assertEqual(1, self.found(NotAfterAck()))


class WorkingTests(CheckerCase):
    """WORKING."""

    def test_holder_not_known(self) -> None:
        """A node that got the job from another one, since it came to the node of WORKING, may not
        have learnt of that; one that had it before has, unless it got it from an original."""
        self.run_.shape.bulk = "all"
        self.deliver(0.5)
        self.request(b"WORKING", 1, reply=4)
        self.deliver(2, THERE)
        self.run_.transfers.sent[b"D"] = [(100_000, THERE)]
        self.assertEqual(1, self.found(WorkingRespected()))
        self.run_.shape.bulk = "some"
        self.assertEqual(0, self.found(WorkingRespected()))
        self.run_.shape.bulk = "all"
        self.run_.transfers.sent[b"D"].append((900_000, THERE))
        self.assertEqual(0, self.found(WorkingRespected()))

    def test_enqueued(self) -> None:
        """WORKING keeps the job from other clients until ENQUEUE or NACK."""
        self.request(b"WORKING", 1, reply=4)
        self.deliver(2, THERE)
        self.assertEqual(1, self.found(WorkingRespected()))
        self.request(b"ENQUEUE", 1.5, THERE)
        self.assertEqual(0, self.found(WorkingRespected()))
