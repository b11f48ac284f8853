"""Jobs that were delivered too often: each becomes a dead letter.

1. The letter is a job in the queue that the policy names, with the REPLICATE of its job; its body
   is the one of :mod:`disque_tx.core.jobs.letters`.
2. The job ends when its letter has its copies (see ``replacements``). If these cannot be had, the
   job is held back, and the letter is tried again later.
3. With an empty name for that queue there is no letter: the job ends, and is counted.
4. A letter never becomes a letter itself, nor does a job whose dead letters would go to its own
   queue: these go on as if there were no limit. So letters cannot go round in a circle.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disque_tx.core.delivery.acks import Acks
from disque_tx.core.delivery.backoff import RetryBackoff
from disque_tx.core.jobs.addrequest import AddRequest
from disque_tx.core.jobs.job import Job
from disque_tx.core.jobs.letters import is_letter, letter_body
from disque_tx.core.policies.settings import QueuePolicy
from disque_tx.core.queues.endings import DEAD
from disque_tx.core.redelivery.replacements import GIVE_UP_MS, ReplacementReason, Replacements
from disque_tx.core.state.state import State
from disque_tx.errors import CommandError
from disque_tx.messages import events

#: The longest RETRY of a letter, in seconds.
_RETRY_S: Final = 300


class _Burial(ReplacementReason):
    """The letter of a job."""

    def __init__(self, state: State, reason: bytes) -> None:
        super().__init__(events.DEAD_LETTER)
        self._endings = state.endings
        self._outbox = state.outbox
        self._totals = state.totals
        self._reason = reason

    def replaced(self, old: Job, new_id: bytes) -> None:
        """The letter is there."""
        self._endings.will_end(old, DEAD)
        self._totals.dead_letters += 1
        self._outbox.record_event_text(events.DEAD, old, events.NO_REASON, 0, self._reason)

    def kept(self, old: Job) -> None:
        """Tried again when the present backoff is over."""


class DeadLetterMaker:
    """Writes dead letters."""

    def __init__(
        self, state: State, backoff: RetryBackoff, replacements: Replacements, acks: Acks
    ) -> None:
        self._turn = state.turn
        self._state = state
        self._reasons = state.reasons
        self._endings = state.endings
        self._outbox = state.outbox
        self._totals = state.totals
        self._membership = state.membership
        self._backoff = backoff
        self._replacements = replacements
        self._acks = acks

    def dead_letter(self, job: Job, policy: QueuePolicy, by_nack: bool) -> bool:
        """Let a letter take the place of an active job with RETRY > 0, whose last return has been
        counted, ``by_nack`` or otherwise. ``False`` when it must go on without."""
        count = job.nacks + job.deliveries
        reason = self._reasons.get(job.id)
        if not reason:
            times = b"time" if count == 1 else b"times"
            reason = b"delivered %d %s" % (count, times)
        if not policy.dead_queue:
            self._endings.will_end(job, DEAD)
            self._totals.letters_dropped += 1
            self._outbox.record_event_text(events.DROPPED, job, events.NO_REASON, 0, reason)
            self._acks.end(job)
            return True
        if policy.dead_queue == job.queue or is_letter(job.body):
            return False
        mine = self._membership.myself.id
        body = letter_body(job, reason, mine, by_nack, self._turn.wall_us)
        request = AddRequest(policy.dead_queue, body)
        request.ttl_s = policy.dead_ttl_s
        request.retry_s = max(1, min(policy.dead_ttl_s // 10, _RETRY_S))
        request.replicate = i64(job.repl)
        burial = _Burial(self._state, reason)
        try:
            self._replacements.begin(job, request, burial)
        except CommandError:
            self._backoff.hold(job, self._turn.now_ms + GIVE_UP_MS)
        return True
