"""What the engine needs of the world around it: small protocols, provided by the services on a real
machine and by the simulator on a simulated one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class Reports(Protocol):
    """Lines for the operator, by importance."""

    def verbose(self, text: str) -> None:
        """More than an operator normally wants."""

    def notice(self, text: str) -> None:
        """What an operator wants to know."""

    def warning(self, text: str) -> None:
        """What an operator must know."""


class Scheduler(Protocol):
    """Work that is done later, in the thread of the node, or meanwhile, in another one."""

    def soon(self, work: Callable[[], object]) -> Callable[[], object]:
        """Do this once the input that is there now is served; returns what cancels it."""

    def in_background(
        self, work: Callable[[], object], done: Callable[[Exception | None], object]
    ) -> None:
        """Do this in another thread. ``done`` is called in the thread of the node, perhaps at once,
        with ``None`` or the reason why it failed."""
