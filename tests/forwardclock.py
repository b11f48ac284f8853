"""Reactors in memory whose time only goes forward, as that of a real one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twisted.internet.interfaces import IDelayedCall
from twisted.internet.task import Clock
from twisted.internet.testing import MemoryReactorClock


class ForwardClock(Clock):
    """A clock that refuses times that have passed."""

    def callLater(
        self, delay: float, callable: Callable[..., object], *args: Any, **kwargs: Any
    ) -> IDelayedCall:
        """Call a function later, or at once."""
        if delay < 0:
            raise AssertionError(f"{delay} is a time that has passed: a real reactor refuses it")
        return super().callLater(delay, callable, *args, **kwargs)


class ForwardReactor(ForwardClock, MemoryReactorClock):
    """A reactor in memory that refuses times that have passed."""
