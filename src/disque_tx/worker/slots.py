"""What runs, where it runs, and how it ended."""

from __future__ import annotations

import traceback
from collections import deque
from collections.abc import Callable
from typing import Final

import attrs

from disque_tx.worker.context import Held
from disque_tx.worker.errors import Draining, Hopeless, NotSerializable
from disque_tx.worker.handlers import Call

_REASON_CHARACTERS_MAX: Final = 500
_TRACE_CHARACTERS_MAX: Final = 4000


@attrs.frozen
class Failed:
    """Why a job was not done. ``trace``: the end of a traceback. ``hopeless``: it would fail
    again. ``interrupted``: it is not its own fault."""

    reason: str
    trace: str = ""
    hopeless: bool = False
    interrupted: bool = False

    @classmethod
    def of(cls, error: BaseException) -> Failed:
        """What an exception says, cut to a bearable length."""
        name = type(error).__name__
        try:
            reason = f"{name}: {error}" if str(error) else name
            trace = "".join(traceback.format_exception(error))
        except Exception:
            # The text of an exception is code of its author, which may fail as well.
            reason, trace = name, ""
        hopeless = isinstance(error, Hopeless | NotSerializable)
        interrupted = isinstance(error, Draining)
        reason, trace = reason[:_REASON_CHARACTERS_MAX], trace[-_TRACE_CHARACTERS_MAX:]
        return cls(reason, trace, hopeless, interrupted)


class Run:
    """One call of a handler, for one job or for a batch."""

    __slots__ = ("call", "held")

    def __init__(self, call: Call, held: list[Held]) -> None:
        self.call = call
        self.held = held


@attrs.define
class Outcome:
    """How a run ended: ``failed`` is ``None`` when it is done. ``payload``: the bytes of its
    result, if somebody wants it. ``late``: the worker had given it up before."""

    run: Run
    payload: bytes | None
    failed: Failed | None
    took_s: float
    late: bool = False


class Slot:
    """A place where one handler runs at a time.

    ``runs``: what is to run here, one after the other; threads are given several short ones at
    once. ``current``: what runs, and since when; a thread sets it. ``stop``: ends it, where that
    is possible. ``stopped_s``: when that was asked for, and ``why``. ``lost``: it passed its time
    limit and cannot be stopped.
    """

    __slots__ = ("current", "lost", "runs", "stop", "stopped_s", "why")

    def __init__(self, run: Run) -> None:
        self.runs = deque([run])
        self.current: tuple[Run, float] | None = None
        self.stop: Callable[[], object] | None = None
        self.stopped_s: float | None = None
        self.why: Exception | None = None
        self.lost = False
