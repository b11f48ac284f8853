"""What becomes of jobs that were not done.

With the commands in their order:

1. A failed job stays leased: WORKING, again at 80 % of RETRY, while its backoff lasts. Then NACK.
   Nothing is added, so nothing can be doubled; if this worker dies meanwhile, the job comes back
   after its RETRY, so nothing can be lost.
2. NACK comes at once when WORKING is refused, when the worker stops, and when too many jobs wait.
3. A job that failed and has had ``retries_max`` nacks and additional deliveries, or is hopeless,
   becomes a dead letter: ADDJOB of the letter, ADDJOB of the failure for who waits for a result,
   then ACKJOB. After a crash in between, the job comes back and there may be two letters with the
   same ID of the job in it.
4. A letter says what the job was added with, so that it can be added again as it was: one SHOW.
5. A job with RETRY 0 (at most once) is never given back once its handler has begun, nor could it
   be: NACK ignores it. It becomes a dead letter at its first failure.
6. What a thread does that cannot be stopped is still being done: the job is left to its RETRY,
   unless it has no other try left.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from random import Random
from typing import Final

import attrs
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger

from disque_tx.client.options import AddOptions
from disque_tx.worker.backoff import Backoff
from disque_tx.worker.context import Held
from disque_tx.worker.leases import Leases
from disque_tx.worker.letters import Letter
from disque_tx.worker.results import RESULT_RETRY_S, encoded_failure
from disque_tx.worker.settling import Settling
from disque_tx.worker.slots import Failed

_HISTORIES_MAX: Final = 1000
_ERRORS_PER_JOB_MAX: Final = 20
_LETTER_RETRY_S: Final = 300
_log = Logger()


@attrs.frozen
class Policy:
    """When to give a job up, and where to.

    ``retries_max``: how many nacks and additional deliveries a job may have. ``dead_queue``: the
    name for dead letters, ``{queue}`` stands for the job's own. ``letter_ttl_s``,
    ``result_ttl_s``: how long letters and results live. ``replicate``: how many copies of them,
    ``None``: the node's default. ``waiting_max``: how many failed jobs to keep for their backoff.
    """

    retries_max: int = attrs.field(default=5, validator=attrs.validators.ge(0))
    dead_queue: str = "dead:{queue}"
    letter_ttl_s: int = attrs.field(default=30 * 86400, validator=attrs.validators.gt(0))
    result_ttl_s: int = attrs.field(default=3600, validator=attrs.validators.gt(0))
    replicate: int | None = None
    waiting_max: int = attrs.field(default=1000, validator=attrs.validators.ge(0))
    backoff: Backoff = attrs.field(factory=Backoff)

    def dead_queue_of(self, queue: str) -> str:
        """Where dead letters of a queue go."""
        return self.dead_queue.replace("{queue}", queue)

    @property
    def letter_options(self) -> AddOptions:
        """How letters are added."""
        return AddOptions(
            retry_s=_LETTER_RETRY_S, ttl_s=self.letter_ttl_s, replicate=self.replicate
        )

    @property
    def result_options(self) -> AddOptions:
        """How results are added."""
        return AddOptions(retry_s=RESULT_RETRY_S, ttl_s=self.result_ttl_s, replicate=self.replicate)


class Failures:
    """``name``: of the worker. ``wall_s``: seconds since the epoch."""

    def __init__(
        self,
        name: str,
        policy: Policy,
        leases: Leases,
        settling: Settling,
        clock: IReactorTime,
        random: Random,
        wall_s: Callable[[], float],
    ) -> None:
        self._name = name
        self._policy = policy
        self._leases = leases
        self._settling = settling
        self._clock = clock
        self._random = random
        self._wall_s = wall_s
        self._waiting: dict[Held, IDelayedCall] = {}
        self._history: OrderedDict[str, list[tuple[float, str]]] = OrderedDict()
        self._stopping = False

    def is_exhausted(self, held: Held) -> bool:
        """Whether a job was delivered more often than it may be, before it is tried at all: its
        handler may end the worker each time."""
        return held.context.attempt > held.retries_max + 1

    def failed(self, held: Held, failed: Failed) -> None:
        """Its handler has failed and does nothing more."""
        if self._has_no_other_try(held, failed):
            self.bury(held, failed)
        else:
            Deferred.fromCoroutine(self._try_again(held, failed))

    def given_up(self, held: Held, failed: Failed) -> None:
        """Its handler takes too long and cannot be stopped."""
        if held.retry_s == 0 or self._has_no_other_try(held, failed):
            self.bury(held, failed)
        else:
            self._note(held, failed)
            self._log(held, failed, "after its RETRY")
            self._settling.leave(held)

    def bury(self, held: Held, failed: Failed) -> None:
        """Make it a dead letter."""
        Deferred.fromCoroutine(self._bury(held, failed))

    def lease_lost(self, held: Held) -> None:
        """Whoever waits for the end of a backoff need not, if somebody else gets the job."""
        if held in self._waiting:
            self._give_back(held)

    def stop(self) -> None:
        """From now on nothing waits."""
        self._stopping = True
        for held in list(self._waiting):
            self._give_back(held)

    def _has_no_other_try(self, held: Held, failed: Failed) -> bool:
        exhausted = held.context.attempt > held.retries_max and not failed.interrupted
        return failed.hopeless or exhausted

    async def _try_again(self, held: Held, failed: Failed) -> None:
        if held.retry_s is None:
            await self._leases.beat(held)
        if held.retry_s is None:
            await self._settling.fetch_options(held)
        if held.retry_s == 0:
            await self._bury(held, failed)
            return
        self._note(held, failed)
        full = len(self._waiting) >= self._policy.waiting_max
        if self._stopping or full or held.context.lease_lost:
            self._log(held, failed, "as soon as somebody takes it")
            self._settling.nack(held)
            return
        wait_s = self._policy.backoff.wait_s(held.context.attempt, self._random)
        self._waiting[held] = self._clock.callLater(wait_s, self._give_back, held)
        self._log(held, failed, f"in {wait_s:.1f} s")

    def _give_back(self, held: Held) -> None:
        timer = self._waiting.pop(held)
        if timer.active():
            timer.cancel()
        self._settling.nack(held)

    async def _bury(self, held: Held, failed: Failed) -> None:
        context, policy = held.context, self._policy
        queue = policy.dead_queue_of(context.queue)
        self._log(held, failed, None, queue)
        if held.terms is None:
            await self._settling.fetch_options(held)
        letter = self._letter(held, failed).encoded()
        add = self._settling.add
        there = await add(queue, letter, policy.letter_options)
        if there and held.reply is not None:
            told = encoded_failure(failed.reason)
            there = await add(held.reply, told, policy.result_options)
        if there:
            self._history.pop(context.id, None)
            self._settling.ack(held)
        else:
            self._settling.nack(held)

    def _log(self, held: Held, failed: Failed, following: str | None, dead: str = "") -> None:
        """A line for each failure, at once. ``following``: when the next try is, ``None`` for no
        other; then the traceback is there too."""
        context = held.context
        _log.warn(
            "{task} failed at job {id} of queue {queue!r}, try {n} of {most},"
            " {following}: {reason}{trace}",
            task=held.task or "The worker",
            id=context.id,
            queue=context.queue,
            n=context.attempt,
            most=1 if held.retry_s == 0 else max(held.retries_max + 1, context.attempt),
            following=f"it goes to {dead!r}" if following is None else f"next {following}",
            reason=failed.reason,
            trace=f"\n{failed.trace.rstrip()}" if following is None and failed.trace else "",
        )
        if following is not None and failed.trace:
            _log.debug("Job {id}: {trace}", id=context.id, trace=failed.trace.rstrip())

    def _letter(self, held: Held, failed: Failed) -> Letter:
        job = held.context.job
        terms = held.terms or AddOptions(retry_s=held.retry_s)
        return Letter(
            queue=job.queue,
            id=job.id,
            body=job.body,
            reason=failed.reason,
            traceback=failed.trace,
            worker=self._name,
            nacks=job.nacks,
            additional_deliveries=job.additional_deliveries,
            failed_at_s=self._wall_s(),
            history=tuple(self._history.get(job.id, ())),
            retry_s=terms.retry_s,
            ttl_s=terms.ttl_s,
            replicate=terms.replicate,
        )

    def _note(self, held: Held, failed: Failed) -> None:
        errors = self._history.setdefault(held.context.id, [])
        errors.append((self._wall_s(), failed.reason))
        del errors[:-_ERRORS_PER_JOB_MAX]
        while len(self._history) > _HISTORIES_MAX:
            self._history.popitem(last=False)
