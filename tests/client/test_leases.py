"""Leases must be renewed in time, on a busy machine and after errors, too."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.client.errors import (
    AlreadyAcknowledged,
    ClientError,
    ConnectionLost,
    Refused,
    TooLate,
    UnknownJob,
)
from disque_tx.client.leases import Lease, renewal_s

_NODE = "one:7711"
_LOST = ConnectionLost(_NODE, "gone", sent=True)
_ENDS: tuple[Refused, ...] = tuple(
    kind("WORKING", _NODE, "ERR", "no") for kind in (TooLate, UnknownJob, AlreadyAcknowledged)
)


class RenewalTests(SynchronousTestCase):
    """A job whose lease ran out is done twice."""

    def test_long(self) -> None:
        """With an ordinary RETRY there is one heartbeat per 80 % of it."""
        self.assertEqual([8, 240], [renewal_s(10), renewal_s(300)])

    def test_short(self) -> None:
        """Two seconds remain for a machine that is late, even if RETRY is a few seconds."""
        self.assertEqual([3, 2, 4], [renewal_s(5), renewal_s(4), renewal_s(6)])

    def test_shortest(self) -> None:
        """Of a RETRY that is too short for that, half remains."""
        self.assertEqual([0.5, 1, 1.5], [renewal_s(1), renewal_s(2), renewal_s(3)])


class LeaseTests(SynchronousTestCase):
    """When the next heartbeat of a job is due."""

    def after(self, *answers: int | ClientError) -> Lease:
        """A lease whose heartbeats were sent at 100 s and answered at 101 s."""
        lease = Lease(100.0)
        for answer in answers:
            lease.heard(answer, 100.0, 101.0)
        return lease

    def test_first(self) -> None:
        """RETRY may be over soon: the first heartbeat does not wait for anything."""
        self.assertEqual((100.0, None), (Lease(100.0).due_s, Lease().retry_s))

    def test_renewed(self) -> None:
        """RETRY starts when a node gets the heartbeat, which may be as early as it was sent."""
        lease = self.after(10)
        self.assertEqual((108.0, 10), (lease.due_s, lease.retry_s))

    def test_unanswered(self) -> None:
        """A heartbeat without an answer is repeated long before RETRY is over, and at once where
        RETRY is short or not known."""
        due_s = [self.after(*answers).due_s for answers in ((60, _LOST), (1, _LOST), (_LOST,))]
        self.assertEqual([107.0, 101.2, 101.2], due_s)

    def test_refused_by_chance(self) -> None:
        """An error that says nothing about the job does not end its lease."""
        error = Refused("WORKING", _NODE, "LOADING", "wait")
        lease = Lease()
        self.assertFalse(lease.heard(error, 100.0, 101.0))
        self.assertEqual((101.2, False), (lease.due_s, lease.over))

    def test_ended(self) -> None:
        """No more heartbeats are due for jobs that are done, gone or too old, and the holder is
        told once."""
        for end in _ENDS:
            lease = self.after(10)
            self.assertTrue(lease.heard(end, 100.0, 101.0))
            self.assertFalse(lease.heard(end, 100.0, 101.0))
            self.assertEqual((None, True, 10), (lease.due_s, lease.over, lease.retry_s))

    def test_never_again(self) -> None:
        """A job that is never delivered again needs no heartbeats, but is still held."""
        lease = self.after(0)
        self.assertEqual((None, False, 0), (lease.due_s, lease.over, lease.retry_s))

    def test_released(self) -> None:
        """An answer that comes after the release makes no other heartbeat due, but tells RETRY."""
        lease = Lease()
        lease.release()
        answers: tuple[int | ClientError, ...] = (10, _LOST, *_ENDS)
        for answer in answers:
            self.assertFalse(lease.heard(answer, 100.0, 101.0))
            self.assertEqual((None, True, 10), (lease.due_s, lease.over, lease.retry_s))
