"""The spans of handlers; see :mod:`disque_tx.client.steps.tracing`."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from disque_tx.client.steps import tracing
from disque_tx.client.steps.tracing import Tracing
from disque_tx.worker.running.runs import Run


class ProcessSpan:
    """The span of one run."""

    def __init__(self, active: Tracing, run: Run) -> None:
        first = run.held[0]
        self._active = active
        self._span: Any = active.process(
            first.context.queue.encode("utf-8", "replace").decode(),
            [held.context.id for held in run.held],
            run.call.carrier,
            getattr(first.delivered, "address", None),
        )

    def current(self) -> AbstractContextManager[None]:
        """A block in which spans of the handler are children of this one."""
        return self._active.current(self._span)

    def end(self, error: BaseException | None = None) -> None:
        """The handler has returned, or failed."""
        self._active.end(self._span, error)


def begin(run: Run) -> ProcessSpan | None:
    """A run starts; ``None`` without tracing."""
    active = tracing.ACTIVE
    return None if active is None else ProcessSpan(active, run)
