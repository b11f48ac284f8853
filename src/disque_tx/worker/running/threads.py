"""Threads for plain functions.

The threads belong to the worker alone, so that a function that hangs does not affect others, and
they do not keep the process from ending. A thread gets many short runs at once, and outcomes are
reported to the reactor's thread in as few calls as possible.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, TypeAlias

from disque_tx.worker.base.context import current
from disque_tx.worker.running.runs import JobFailure, Run, RunOutcome, Slot
from disque_tx.worker.running.tracing import begin

#: A slot and the outcome of one of its runs; ``None``: there are no more runs.
Done: TypeAlias = tuple[Slot, RunOutcome | None]
Report: TypeAlias = Callable[[list[Done]], object]


def run_in_thread(run: Run) -> tuple[bytes | None, JobFailure | None]:
    """Execute a run in this thread. All exceptions of a handler are caught, even SystemExit."""
    span = begin(run)
    token = None if run.call.handler.is_batch else current.set(run.held[0].context)
    try:
        if span is None:
            return run.call.run(), None
        with span.current():
            payload = run.call.run()
        span.end()
        return payload, None
    except BaseException as error:
        if span is not None:
            span.end(error)
        return None, JobFailure.of(error)
    finally:
        # The next run in this thread may be one of several jobs, which has no current one.
        if token is not None:
            current.reset(token)


class Threads:
    """Up to ``size`` threads, started when they are needed.

    ``call_from_thread``: calls a function in the reactor's thread, where ``report`` runs.
    ``seconds``: a clock that any thread may read.
    """

    def __init__(
        self,
        size: int,
        call_from_thread: Callable[[Callable[[], object]], object],
        seconds: Callable[[], float],
        report: Report,
    ) -> None:
        self._size = size
        self._call_from_thread = call_from_thread
        self._seconds = seconds
        self._report = report
        self._slots: SimpleQueue[Slot | None] = SimpleQueue()
        self._done: list[Done] = []
        self._announced = False
        self._started = 0
        self._busy = 0

    def put(self, slot: Slot) -> None:
        """Execute the runs of a slot. There may be ``size`` slots at a time."""
        self._busy += 1
        if self._started < min(self._busy, self._size):
            self._started += 1
            name = f"disque-worker-{self._started}"
            threading.Thread(target=self._work, name=name, daemon=True).start()
        self._slots.put(slot)

    def stop(self) -> None:
        """End the threads, each after its current slot."""
        for _ in range(self._started):
            self._slots.put(None)
        self._started = 0

    def _work(self) -> None:
        while (slot := self._slots.get()) is not None:
            while slot.runs:
                try:
                    run = slot.runs.popleft()
                except IndexError:
                    break  # The reactor's thread has taken them back at this moment.
                start_s = self._seconds()
                slot.current = (run, start_s)
                payload, failed = run_in_thread(run)
                took_s = self._seconds() - start_s
                slot.current = None
                self._hand_over((slot, RunOutcome(run, payload, failed, took_s)))
            self._hand_over((slot, None))

    def _hand_over(self, done: Done) -> None:
        self._done.append(done)
        if not self._announced:
            self._announced = True
            self._call_from_thread(self._flush)

    def _flush(self) -> None:
        # In this order, so that outcomes appended after the exchange schedule another flush.
        self._announced = False
        done, self._done = self._done, []
        self._busy -= sum(1 for _, outcome in done if outcome is None)
        self._report(done)


def threads_of(size: int, reactor: Any, report: Report) -> Threads:
    """The threads of a worker that runs on this reactor."""
    return Threads(size, reactor.callFromThread, reactor.seconds, report)
