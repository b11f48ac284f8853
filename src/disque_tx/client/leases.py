"""Leases: how long a program that holds a job has it to itself, and when that is renewed.

1. A heartbeat (WORKING) restarts RETRY, and is answered with it. RETRY starts when a job is queued,
   and GETJOB does not restart it: that of a job that waited may be over a moment after its
   delivery. So the first heartbeat is due soon.
2. The next one is due when 80 % of RETRY have passed since the last one was sent, which leaves two
   seconds of ten for a busy machine. Of a shorter RETRY that would leave less, and a few hundred
   milliseconds are soon lost: so two seconds are left then too, or half of RETRY if that is less.
3. One that got no answer is repeated after a tenth of RETRY, 0.2 s at least.
4. After one that was refused no more are due: half of the TTL is over, and the job may be delivered
   to another worker meanwhile; or it is acknowledged, or no node knows it any more.
5. A job with RETRY 0 is never delivered again, and gets no more heartbeats, either.
6. WORKING takes a job out of its queue. So a job is given back (NACK) only when no heartbeat for it
   is under way: it would arrive after the NACK, and the job be gone until its RETRY is over.

Workers, integrations and the Spark source all follow these rules, each with timers of its own.
"""

from __future__ import annotations

from typing import Final

from disque_tx.client.errors import AlreadyAcknowledged, ClientError, TooLate, UnknownJob

#: The answers to a heartbeat after which no more are sent.
REFUSALS: Final = (TooLate, UnknownJob, AlreadyAcknowledged)
#: Part of RETRY that passes between two heartbeats.
_PART: Final = 0.8
_PART_MIN: Final = 0.5
_RESERVE_S: Final = 2.0
_PART_AFTER_ERROR: Final = 0.1
_AFTER_ERROR_S_MIN: Final = 0.2


class Lease:
    """The lease of one job, or of several jobs whose heartbeats are sent together.

    ``due_s``: when the next heartbeat is due, on any steady clock, ``None`` for no more; the first
    one is due at once. ``retry_s``: RETRY, ``None`` until it is known. ``over``: the lease was
    released or refused.
    """

    __slots__ = ("due_s", "over", "retry_s")

    def __init__(self, due_s: float = 0.0) -> None:
        self.due_s: float | None = due_s
        self.retry_s: int | None = None
        self.over = False

    def release(self) -> None:
        """Let no more heartbeats be due. One that was sent may still be unanswered."""
        self.due_s = None
        self.over = True

    def heard(self, answer: int | ClientError, sent_s: float, now_s: float) -> bool:
        """Count the answer to a heartbeat that was sent then, or the error in place of it. Returns
        whether the lease has ended by it."""
        if isinstance(answer, REFUSALS):
            ended = not self.over
            self.release()
            return ended
        if not isinstance(answer, ClientError):
            self.retry_s = answer
        if not self.over:
            self.due_s = self._next_s(answer, sent_s, now_s)
        return False

    def _next_s(self, answer: int | ClientError, sent_s: float, now_s: float) -> float | None:
        if isinstance(answer, ClientError):
            return now_s + max(_AFTER_ERROR_S_MIN, _PART_AFTER_ERROR * (self.retry_s or 0))
        return sent_s + renewal_s(answer) if answer else None


def renewal_s(retry_s: float) -> float:
    """Seconds from one heartbeat to the next, for a job with this RETRY."""
    return max(_PART_MIN * retry_s, min(_PART * retry_s, retry_s - _RESERVE_S))
