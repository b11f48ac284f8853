"""How the blocking clients wait for an answer, without missing a signal."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

#: A signal that arrives a moment before a wait begins, or in another thread, does not end the wait:
#: Python runs its handler after it.
STEP_S: Final = 0.5


def steps(timeout_s: float | None) -> Iterator[float]:
    """The seconds of the waits, one after the other, that ``timeout_s`` is divided into; ``None``:
    without end."""
    left_s = math.inf if timeout_s is None else timeout_s
    while left_s > STEP_S:
        yield STEP_S
        left_s -= STEP_S
    yield left_s
