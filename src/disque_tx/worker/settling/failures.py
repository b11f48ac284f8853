"""Failed jobs: when they are tried again, and how they become dead letters.

1. A failed job stays leased while its backoff lasts: WORKING is sent at 80 % of RETRY. Then comes
   NACK. Nothing is added, so nothing can be duplicated; if this worker dies meanwhile, the job is
   delivered again after its RETRY, so nothing can be lost.
2. NACK comes at once when WORKING is refused, when the worker stops, and when too many jobs wait.
3. A job that failed and has had ``retries_max`` nacks and additional deliveries, or is hopeless,
   becomes a dead letter: ADDJOB of the letter, ADDJOB of the failure if a result was asked for,
   then ACKJOB. After a crash in between, the job is delivered again, and there may be two letters
   with its ID.
4. A letter contains the options that the job was added with, so that it can be added again as it
   was. This takes one SHOW.
5. A job with RETRY 0 (at most once) is never given back once its handler has started; NACK would
   ignore it. It becomes a dead letter at its first failure.
6. Where the nodes have a policy for the queue of the job, they do this: with ``retry-delay``, NACK
   comes at once, and the node holds the job back; with ``max-deliveries``, only the node makes dead
   letters of jobs that failed too often (see ``nodepolicies``). NACK contains the reason then. If a
   result was asked for, ADDJOB of the failure comes before the NACK with which the letter is made.
7. A handler in a thread cannot be stopped. When it is given up, its job is delivered again after
   its RETRY, unless it has no attempt left.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from random import Random
from typing import Final

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger

from disque_tx.client.options import AddOptions
from disque_tx.worker.base.context import HeldJob
from disque_tx.worker.running.runs import JobFailure
from disque_tx.worker.settling.deadletters import Letter
from disque_tx.worker.settling.leases import WorkerLeases
from disque_tx.worker.settling.nodepolicies import NodePolicies, QueueRules
from disque_tx.worker.settling.settling import Settler
from disque_tx.worker.tasks.policy import Policy
from disque_tx.worker.tasks.results import encoded_failure

_HISTORIES_MAX: Final = 1000
_ERRORS_PER_JOB_MAX: Final = 20
_log = Logger()


class FailureHandler:
    """Handles the failures of one worker. ``name``: of the worker. ``wall_s``: seconds since the
    epoch."""

    def __init__(
        self,
        name: str,
        policy: Policy,
        policies: NodePolicies,
        leases: WorkerLeases,
        settling: Settler,
        *,
        clock: IReactorTime,
        random: Random,
        wall_s: Callable[[], float],
    ) -> None:
        self._name = name
        self._policy = policy
        self._policies = policies
        self._leases = leases
        self._settling = settling
        self._clock = clock
        self._random = random
        self._wall_s = wall_s
        self._waiting: dict[HeldJob, IDelayedCall] = {}
        self._history: OrderedDict[str, list[tuple[float, str]]] = OrderedDict()
        self._stopping = False

    def is_exhausted(self, held: HeldJob) -> bool:
        """Whether a job was delivered too often even before this attempt: perhaps its handler
        crashes the worker each time."""
        exhausted = held.context.attempt > held.retries_max + 1
        return exhausted and not self._policies.known(held.context.queue).letters

    def failed(self, held: HeldJob, failed: JobFailure) -> None:
        """The handler of a job has failed, and has ended."""
        Deferred.fromCoroutine(self._failed(held, failed))

    async def _failed(self, held: HeldJob, failed: JobFailure) -> None:
        rules = await self._policies.of(held.context.queue)
        if self._has_no_other_try(held, failed):
            await self._bury(held, failed)
        else:
            await self._try_again(held, failed, rules)

    def given_up(self, held: HeldJob, failed: JobFailure) -> None:
        """The handler of a job takes too long and cannot be stopped."""
        if held.lease.retry_s == 0 or self._has_no_other_try(held, failed):
            self.bury(held, failed)
        else:
            self._remember(held, failed)
            self._log(held, failed, "next after its RETRY")
            self._settling.leave(held)

    def bury(self, held: HeldJob, failed: JobFailure) -> None:
        """Make a job a dead letter."""
        Deferred.fromCoroutine(self._bury(held, failed))

    def lease_lost(self, held: HeldJob) -> None:
        """End the backoff of a job at once: it may be delivered to another worker."""
        if held in self._waiting:
            self._give_back(held)

    def stop(self) -> None:
        """End all backoffs, and start no more."""
        self._stopping = True
        for held in list(self._waiting):
            self._give_back(held)

    def _has_no_other_try(self, held: HeldJob, failed: JobFailure) -> bool:
        exhausted = held.context.attempt > held.retries_max and not failed.interrupted
        by_nodes = self._policies.known(held.context.queue).letters
        return failed.hopeless or (exhausted and not by_nodes)

    async def _try_again(self, held: HeldJob, failed: JobFailure, rules: QueueRules) -> None:
        if held.lease.retry_s is None:
            await self._leases.send_heartbeat(held)
        if held.lease.retry_s is None:
            await self._settling.fetch_options(held)
        if held.lease.retry_s == 0:
            await self._bury(held, failed)
            return
        self._remember(held, failed)
        if rules.backoff or rules.letters:
            held.reason = failed.reason
        if held.reply is not None and rules.are_over(held.context.attempt):
            rules = await self._policies.of(held.context.queue, now=True)
            if rules.are_over(held.context.attempt):
                await self._leave_to_node(held, failed, held.reply)
                return
        if rules.backoff:
            self._log(held, failed, "next as the policy of its queue says")
            self._settling.nack(held)
            return
        full = len(self._waiting) >= self._policy.waiting_max
        if self._stopping or full or held.context.lease_lost:
            self._log(held, failed, "next as soon as a worker takes it")
            self._settling.nack(held)
            return
        wait_s = self._policy.backoff.wait_s(held.context.attempt, self._random)
        self._waiting[held] = self._clock.callLater(wait_s, self._give_back, held)
        self._log(held, failed, f"next in {wait_s:.1f} s")

    async def _leave_to_node(self, held: HeldJob, failed: JobFailure, reply: str) -> None:
        """Give back a job of which the node makes a dead letter: who waits for the result learns
        only from the worker that there is none."""
        self._log(held, failed, "its node gives it up, as the policy of its queue says")
        await self._settling.add(reply, encoded_failure(failed.reason), self._policy.result_options)
        self._settling.nack(held)

    def _give_back(self, held: HeldJob) -> None:
        timer = self._waiting.pop(held)
        if timer.active():
            timer.cancel()
        self._settling.nack(held)

    async def _bury(self, held: HeldJob, failed: JobFailure) -> None:
        context, policy = held.context, self._policy
        queue = policy.dead_queue_of(context.queue)
        self._log(held, failed, None, queue)
        if held.add_options is None:
            await self._settling.fetch_options(held)
        letter = self._letter(held, failed).encoded()
        add = self._settling.add
        there = await add(queue, letter, policy.letter_options)
        if there and held.reply is not None:
            failure_body = encoded_failure(failed.reason)
            there = await add(held.reply, failure_body, policy.result_options)
        if there:
            self._history.pop(context.id, None)
            self._settling.ack(held)
        else:
            self._settling.nack(held)

    def _log(
        self, held: HeldJob, failed: JobFailure, following: str | None, dead: str = ""
    ) -> None:
        """Log a failure. ``following``: what happens to the job, ``None`` if it becomes a dead
        letter; then the traceback is logged, too."""
        context = held.context
        most = self._policies.known(context.queue).letters or held.retries_max + 1
        _log.warn(
            "{task} failed at job {id} of queue {queue!r}, try {n} of {most},"
            " {following}: {reason}{trace}",
            task=held.task or "The worker",
            id=context.id,
            queue=context.queue,
            n=context.attempt,
            most=1 if held.lease.retry_s == 0 else max(most, context.attempt),
            following=f"it goes to {dead!r}" if following is None else following,
            reason=failed.reason,
            trace=f"\n{failed.trace.rstrip()}" if following is None and failed.trace else "",
        )
        if following is not None and failed.trace:
            _log.debug("Job {id}: {trace}", id=context.id, trace=failed.trace.rstrip())

    def _letter(self, held: HeldJob, failed: JobFailure) -> Letter:
        job = held.context.job
        add_options = held.add_options or AddOptions(retry_s=held.lease.retry_s)
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
            retry_s=add_options.retry_s,
            ttl_s=add_options.ttl_s,
            replicate=add_options.replicate,
        )

    def _remember(self, held: HeldJob, failed: JobFailure) -> None:
        errors = self._history.setdefault(held.context.id, [])
        errors.append((self._wall_s(), failed.reason))
        del errors[:-_ERRORS_PER_JOB_MAX]
        while len(self._history) > _HISTORIES_MAX:
            self._history.popitem(last=False)
