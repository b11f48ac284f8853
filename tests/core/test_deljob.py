"""DELJOB from other nodes about jobs whose acknowledgement is not yet confirmed by all holders
(cluster protocol, section 7.11)."""

from __future__ import annotations

from disque_tx.core.jobs.job import Job
from disque_tx.messages.bustypes import DELJOB, GOTACK, REPLJOB, SETACK, YOURJOBS
from disque_tx.messages.records import ACKED
from tests.core.bench import ME
from tests.core.delivery.test_acks import UNKNOWN, AckCase
from tests.core.peerbench import B, C, peer_job


class DeljobCase(AckCase):
    """Jobs that a DELJOB ends."""

    def assert_ended_by(self, peer: bytes, job: Job) -> None:
        """DELJOB of this peer ends the job here, and no further message is sent."""
        self.clear_sent()
        self.receive_signal(peer, DELJOB, job.id)
        self.assertEqual([], self.signals(B) + self.signals(C))
        self.assert_nothing_left()


class CollectingTests(DeljobCase):
    """This node collects the confirmations of an acknowledgement, and some are missing."""

    def test_withdrawn_late(self) -> None:
        """A DELJOB that was sent because an ADDJOB was refused may arrive after ACKJOB. A holder
        that is cut off still gets the acknowledgement, or it would deliver the job again."""
        job = self.copy(B, C, ME)
        self.unlink(C)
        self.assertEqual(1, self.node.acknowledge([job.id]))
        self.receive_signal(B, DELJOB, job.id)
        self.assertEqual(ACKED, self.job(job.id).state)
        self.clear_sent()
        self.link(C)
        self.pass_ms(1_300)
        self.assertEqual(([], [(SETACK, 3)]), (self.signals(B), self.signals(C)))
        self.receive_signal(C, GOTACK, job.id, 1)
        self.assertEqual([(DELJOB, 0)], self.signals(C))
        self.assert_nothing_left()

    def test_last_confirmation(self) -> None:
        """The node that withdrew the job does not deliver it, so nobody waits for it any longer.
        The others were sent the same DELJOB, and get no second one."""
        job = self.copy(B, C, ME)
        self.node.acknowledge([job.id])
        self.receive_signal(C, GOTACK, job.id, 1)
        self.assert_ended_by(B, job)

    def test_not_held(self) -> None:
        """A node that does not hold the job goes on looking for those that do."""
        job = self.copy(B, C, giver=B)
        self.node.acknowledge([job.id])
        self.receive_signal(B, DELJOB, job.id)
        self.assertEqual(ACKED, self.job(job.id).state)
        self.receive_signal(C, GOTACK, job.id, 1)
        self.assert_nothing_left()

    def test_never_known(self) -> None:
        """So does one that never knew the job: the other nodes may."""
        self.node.acknowledge([UNKNOWN])
        self.receive_signal(C, DELJOB, UNKNOWN)
        self.assertEqual(1, self.node.jobs.acked)
        self.receive_signal(B, GOTACK, UNKNOWN, 0)
        self.assert_nothing_left()

    def test_collected_by_another(self) -> None:
        """A node that collected all confirmations sends DELJOB, while a holder's link to this node
        is stalled. What the holder sent before it confirmed arrives later, and must not bring the
        job back."""
        job = self.copy(B, C, ME)
        self.node.acknowledge([job.id])
        self.clear_sent()
        self.receive_signal(C, DELJOB, job.id)
        self.assertEqual(ACKED, self.job(job.id).state)
        self.receive_jobs(B, YOURJOBS, peer_job(1, (B, C, ME)))
        self.assertEqual((ACKED, 0), (self.job(job.id).state, self.length()))
        self.receive_signal(B, GOTACK, job.id, 1)
        self.assert_nothing_left()


class NotCollectingTests(DeljobCase):
    """Another node collects the confirmations."""

    def test_collected_elsewhere(self) -> None:
        """DELJOB ends the job here: an acknowledgement costs no further messages."""
        job = self.copy(B, C, ME)
        self.receive_signal(B, SETACK, job.id, 3)
        self.assert_ended_by(B, job)

    def test_not_acknowledged(self) -> None:
        """A withdrawn job that nobody acknowledged is not delivered."""
        job = peer_job(1, (B, ME))
        self.receive_jobs(B, REPLJOB, job)
        self.receive_signal(B, DELJOB, job.id)
        self.assert_nothing_left()
