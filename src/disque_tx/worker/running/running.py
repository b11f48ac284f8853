"""Runs handlers in slots, and enforces their time limits."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

import attrs
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import LoopingCall
from twisted.logger import Logger
from twisted.python.failure import Failure

from disque_tx.worker.base.context import HeldJob, current
from disque_tx.worker.base.errors import Draining, TimeLimitPassed
from disque_tx.worker.running.processes import Processes, RemoteError
from disque_tx.worker.running.runs import JobFailure, Run, RunOutcome, Slot
from disque_tx.worker.running.threads import Done
from disque_tx.worker.running.tracing import ProcessSpan, begin
from disque_tx.worker.tasks.handlers import Handler, HandlerKind

TICK_S: Final = 0.1
#: How long a run may take to stop before its slot counts as lost.
_STUCK_S: Final = 10.0
#: How long the runs passed to a thread at once should take. A longer one gives back the others.
_HAND_OVER_S: Final = 0.05
#: The weight of the newest run in the mean.
_NEWEST: Final = 0.1
_log = Logger()


class Pool(Protocol):
    """Threads that execute the runs of slots."""

    def put(self, slot: Slot) -> None:
        """Execute the runs of a slot."""

    def stop(self) -> None:
        """End the threads: all slots have been closed."""


@attrs.frozen
class RunnerCallbacks:
    """``ended``: called with the outcomes of runs. ``given_up``: with a run that cannot be stopped.
    ``all_lost``: when no slot is left."""

    ended: Callable[[list[RunOutcome]], object]
    given_up: Callable[[Run, JobFailure], object]
    all_lost: Callable[[], object]


class Runner:
    """Executes runs. ``slots``: how many at a time. ``time_limit_s``: for handlers without one of
    their own. ``mean_s``: moving average of how long runs take. ``buffer``: runs that wait for a
    slot."""

    def __init__(
        self,
        clock: IReactorTime,
        slots: int,
        time_limit_s: float | None,
        pool: Callable[[Callable[[list[Done]], object]], Pool],
        processes: Processes,
        listener: RunnerCallbacks,
    ) -> None:
        self._clock = clock
        self._slots_max = slots
        self._time_limit_s = time_limit_s
        self._pool = pool(self._report)
        self._processes = processes
        self._listener = listener
        self._slots: set[Slot] = set()
        self._done: list[Done] = []
        self._ticks = LoopingCall(self._tick)
        self._ticks.clock = clock
        self.mean_s = 1.0
        self.buffer: deque[Run] = deque()
        self._starters: Mapping[HandlerKind, Callable[[Slot], None]] = {
            HandlerKind.THREAD: self._start_thread,
            HandlerKind.COROUTINE: self._start_coroutine,
            HandlerKind.COMMAND: self._start_process,
            HandlerKind.PROCESS: self._start_process,
        }

    @property
    def free(self) -> int:
        """How many more could run now."""
        return self._slots_max - len(self._slots)

    @property
    def lost(self) -> int:
        """How many slots are held by runs that cannot be stopped."""
        return sum(slot.lost for slot in self._slots)

    def coroutines(self) -> list[Handler]:
        """The handlers that run on the reactor now; any thread may call this."""
        runs = [slot.current for slot in list(self._slots)]
        handlers = [run[0].call.handler for run in runs if run is not None]
        return [handler for handler in handlers if handler.kind is HandlerKind.COROUTINE]

    def running(self) -> list[tuple[HeldJob, float]]:
        """The jobs that are worked on now, and for how many seconds."""
        now_s = self._clock.seconds()
        runs = [slot.current for slot in list(self._slots)]
        return [(held, now_s - run[1]) for run in runs if run is not None for held in run[0].held]

    @property
    def busy(self) -> bool:
        """Whether anything runs that is not given up."""
        return self.lost < len(self._slots)

    def start(self) -> None:
        """Start as many runs of the buffer as there are free slots."""
        while self.buffer and self.free > 0:
            slot = Slot(self.buffer.popleft())
            self._slots.add(slot)
            self._starters[slot.runs[0].call.handler.kind](slot)
        if self._slots and not self._ticks.running:
            self._ticks.start(TICK_S, now=False)

    # -- the ways to run ---------------------------------------------------------------------

    def _start_thread(self, slot: Slot) -> None:
        share = -(-len(self.buffer) // (self.free + 1))
        count = min(share, int(_HAND_OVER_S / max(self.mean_s, 1e-6)))
        while len(slot.runs) < count and self.buffer:
            if self.buffer[0].call.handler.kind is not HandlerKind.THREAD:
                break
            slot.runs.append(self.buffer.popleft())
        self._pool.put(slot)

    def _start_coroutine(self, slot: Slot) -> None:
        run = slot.runs.popleft()
        # It starts at once, and may block before it returns.
        slot.current = (run, self._clock.seconds())
        answer = Deferred.fromCoroutine(_awaited(run))
        self._follow(slot, run, answer, answer.cancel)

    def _start_process(self, slot: Slot) -> None:
        run = slot.runs.popleft()
        handler = run.call.handler
        kinds = {
            HandlerKind.COMMAND: self._processes.command,
            HandlerKind.PROCESS: self._processes.function,
        }
        try:
            answer, stop = kinds[handler.kind](handler, run.held[0].context)
        except Exception as error:
            # Such as a program that does not exist, or a limit on the number of processes.
            answer, stop = _failed(error), _nothing
        span = begin(run)
        if span is not None:
            answer.addCallbacks(_then_end(span), _then_fail(span))
        self._follow(slot, run, answer, stop)

    def _follow(
        self, slot: Slot, run: Run, answer: Deferred[bytes | None], stop: Callable[[], object]
    ) -> None:
        start_s = self._clock.seconds()
        slot.current = (run, start_s)
        slot.stop = stop

        def ended(payload: bytes | None, failed: JobFailure | None) -> None:
            slot.current = None
            took_s = self._clock.seconds() - start_s
            self._done += [(slot, RunOutcome(run, payload, failed, took_s)), (slot, None)]
            if len(self._done) == 2:
                self._clock.callLater(0, self._flush)

        answer.addCallbacks(
            lambda payload: ended(payload, None), lambda why: ended(None, _reason(slot, why))
        )

    # -- how runs end ------------------------------------------------------------------------

    def _flush(self) -> None:
        done, self._done = self._done, []
        self._report(done)

    def _report(self, done: list[Done]) -> None:
        outcomes = []
        for slot, outcome in done:
            if outcome is None:
                self._slots.discard(slot)
                if slot.lost:
                    _log.info("A handler that was given up has ended; its slot is free again")
                continue
            outcome.late = slot.lost
            self.mean_s += _NEWEST * (outcome.took_s - self.mean_s)
            outcomes.append(outcome)
        if not self._slots and self._ticks.running:
            self._ticks.stop()
        self._listener.ended(outcomes)

    def _tick(self) -> None:
        now_s = self._clock.seconds()
        for slot in list(self._slots):
            current_run = slot.current
            if current_run is not None and not slot.lost:
                self._check(slot, *current_run, now_s)

    def _check(self, slot: Slot, run: Run, start_s: float, now_s: float) -> None:
        if slot.runs and now_s - start_s > _HAND_OVER_S:
            self._take_back(slot)
        limit_s = run.call.handler.time_limit_s or self._time_limit_s
        if slot.stopped_s is not None:
            if now_s - slot.stopped_s > _STUCK_S:
                self._give_up(slot, run)
        elif limit_s is not None and now_s - start_s > limit_s:
            self._stop(slot, run, TimeLimitPassed(f"It took longer than {limit_s:g} s."))

    def _stop(self, slot: Slot, run: Run, why: Exception) -> None:
        slot.why = why
        slot.stopped_s = self._clock.seconds()
        if slot.stop is None:
            self._give_up(slot, run)
        else:
            slot.stop()

    def _give_up(self, slot: Slot, run: Run) -> None:
        slot.lost = True
        self._take_back(slot)
        _log.error(
            "Job {id} of queue {queue!r} is given up, its handler cannot be stopped: {why}"
            " {lost} of {slots} slots are lost",
            id=run.held[0].context.id,
            queue=run.held[0].context.queue,
            why=slot.why,
            lost=self.lost,
            slots=self._slots_max,
        )
        self._listener.given_up(run, JobFailure.of(slot.why or Draining("The worker stops.")))
        if self.lost == self._slots_max:
            self._listener.all_lost()

    def _take_back(self, slot: Slot) -> None:
        """Put the runs that a thread has not started back into the buffer."""
        while slot.runs:
            try:
                self.buffer.appendleft(slot.runs.pop())
            except IndexError:
                break  # Its thread has started it at this moment.
        self.start()

    # -- the end -----------------------------------------------------------------------------

    def take_unstarted(self) -> list[Run]:
        """Remove and return all runs that have not started."""
        runs = list(self.buffer)
        self.buffer.clear()
        for slot in self._slots:
            while slot.runs:
                try:
                    runs.append(slot.runs.pop())
                except IndexError:
                    break
        return runs

    def stop_all(self) -> None:
        """Stop all runs; those that cannot be stopped are given up."""
        for slot in list(self._slots):
            current_run = slot.current
            if current_run is not None and not slot.lost and slot.stopped_s is None:
                self._stop(slot, current_run[0], Draining("The worker stops."))

    def close(self) -> None:
        """Release threads and processes; nothing can run after this."""
        if self._ticks.running:
            self._ticks.stop()
        self._pool.stop()
        self._processes.close()


async def _awaited(run: Run) -> bytes | None:
    if not run.call.handler.is_batch:
        current.set(run.held[0].context)
    span = begin(run)
    if span is None:
        return await run.call.await_()
    try:
        with span.current():
            payload = await run.call.await_()
    except BaseException as error:
        span.end(error)
        raise
    span.end()
    return payload


def _then_end(span: ProcessSpan) -> Callable[[bytes | None], bytes | None]:
    def ended(payload: bytes | None) -> bytes | None:
        span.end()
        return payload

    return ended


def _then_fail(span: ProcessSpan) -> Callable[[Failure], Failure]:
    def failed(failure: Failure) -> Failure:
        span.end(failure.value)
        return failure

    return failed


def _reason(slot: Slot, failure: Failure) -> JobFailure:
    error = slot.why or failure.value
    if isinstance(error, RemoteError):
        return JobFailure(error.reason, error.trace, error.hopeless)
    return JobFailure.of(error or Draining("The worker stops."))


def _failed(error: Exception) -> Deferred[Any]:
    answer: Deferred[Any] = Deferred()
    answer.errback(error)
    return answer


def _nothing() -> None:
    """Stops a run that could not be started."""
