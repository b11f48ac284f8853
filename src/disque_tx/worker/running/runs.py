"""Runs of handlers: for one job or a batch, in which slot, and how they ended."""

from __future__ import annotations

import traceback
from collections import deque
from collections.abc import Callable
from typing import Final

import attrs
from twisted.internet.interfaces import IDelayedCall, IReactorTime

from disque_tx.worker.base.context import HeldJob
from disque_tx.worker.base.errors import Draining, Hopeless, NotSerializable
from disque_tx.worker.tasks.handlers import Handler, HandlerCall

_REASON_CHARACTERS_MAX: Final = 500
_TRACE_CHARACTERS_MAX: Final = 4000


@attrs.frozen
class JobFailure:
    """Why a job was not done. ``trace``: the end of a traceback. ``hopeless``: the job would fail
    again. ``interrupted``: the worker stopped, so the attempt does not count."""

    reason: str
    trace: str = ""
    hopeless: bool = False
    interrupted: bool = False

    @classmethod
    def of(cls, error: BaseException) -> JobFailure:
        """The text and traceback of an exception, cut to a limit."""
        name = type(error).__name__
        try:
            reason = f"{name}: {error}" if str(error) else name
            trace = "".join(traceback.format_exception(error))
        except BaseException:
            # The __str__ of an exception is code of its author, which may fail as well.
            reason, trace = name, ""
        hopeless = isinstance(error, Hopeless | NotSerializable)
        interrupted = isinstance(error, Draining)
        reason, trace = reason[:_REASON_CHARACTERS_MAX], trace[-_TRACE_CHARACTERS_MAX:]
        return cls(reason, trace, hopeless, interrupted)


class Run:
    """One call of a handler, for one job or for a batch."""

    __slots__ = ("call", "held")

    def __init__(self, call: HandlerCall, held: list[HeldJob]) -> None:
        self.call = call
        self.held = held


@attrs.define
class RunOutcome:
    """How a run ended: ``failed`` is ``None`` after success. ``payload``: the bytes of its result,
    if one was asked for. ``late``: the worker had already given the run up."""

    run: Run
    payload: bytes | None
    failed: JobFailure | None
    took_s: float
    late: bool = False


class Slot:
    """One unit of a worker's concurrency: one handler runs in it at a time.

    ``runs``: the runs that follow, one after the other; threads are given several short ones at
    once. ``current``: the current run, and its start time; a thread sets it. ``stop``: ends the
    run, where that is possible. ``stopped_s``: when that was requested, and ``why``. ``lost``: the
    run passed its time limit and cannot be stopped.
    """

    __slots__ = ("current", "lost", "runs", "stop", "stopped_s", "why")

    def __init__(self, run: Run) -> None:
        self.runs = deque([run])
        self.current: tuple[Run, float] | None = None
        self.stop: Callable[[], object] | None = None
        self.stopped_s: float | None = None
        self.why: Exception | None = None
        self.lost = False


@attrs.define
class _Batch:
    """An incomplete batch. ``timer``: fires when it runs, full or not."""

    held: list[HeldJob]
    timer: IDelayedCall


class Batches:
    """Collects jobs for handlers that take several at once. ``ready``: called with each batch that
    can run."""

    def __init__(self, clock: IReactorTime, ready: Callable[[Run], object]) -> None:
        self._clock: Final = clock
        self._ready: Final = ready
        self._open: dict[Handler, _Batch] = {}

    def add(self, held: HeldJob, handler: Handler) -> None:
        """Add a job to the batch of its handler, which runs when it is full."""
        batch = self._open.get(handler)
        if batch is None:
            timer = self._clock.callLater(handler.wait_s, self._run, handler)
            batch = self._open[handler] = _Batch([], timer)
        batch.held.append(held)
        if len(batch.held) >= handler.size:
            batch.timer.cancel()
            self._run(handler)

    def _run(self, handler: Handler) -> None:
        held = self._open.pop(handler).held
        self._ready(Run(HandlerCall(handler, ([one.context for one in held],)), held))

    def take_all(self) -> list[HeldJob]:
        """Remove and return all waiting jobs."""
        batches = list(self._open.values())
        self._open.clear()
        for batch in batches:
            batch.timer.cancel()
        return [held for batch in batches for held in batch.held]
