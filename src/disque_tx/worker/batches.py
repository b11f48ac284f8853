"""Jobs that wait for others of their queue, to be done together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import attrs
from twisted.internet.interfaces import IDelayedCall, IReactorTime

from disque_tx.worker.context import Held
from disque_tx.worker.handlers import Call, Handler
from disque_tx.worker.slots import Run


@attrs.define
class _Batch:
    """``timer``: when it runs, full or not."""

    held: list[Held]
    timer: IDelayedCall


class Batches:
    """``ready``: is given what can run."""

    def __init__(self, clock: IReactorTime, ready: Callable[[Run], object]) -> None:
        self._clock: Final = clock
        self._ready: Final = ready
        self._open: dict[Handler, _Batch] = {}

    def add(self, held: Held, handler: Handler) -> None:
        """It waits for others, or completes a batch."""
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
        self._ready(Run(Call(handler, ([one.context for one in held],)), held))

    def take_all(self) -> list[Held]:
        """Take everything away that waits."""
        batches = list(self._open.values())
        self._open.clear()
        for batch in batches:
            batch.timer.cancel()
        return [held for batch in batches for held in batch.held]
