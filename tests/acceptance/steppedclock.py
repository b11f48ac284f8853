"""``disque-server`` on a clock that can be set: its time of day is ahead by the seconds in a file,
which ``STEP_FILE`` names, as soon as that file has some. The steady clock is that of the machine.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable
from typing import Final

#: How often the file is looked at, in nanoseconds.
_LOOK_NS: Final = 100_000_000
_NS: Final = 1_000_000_000


class SteppedClock:
    """The time of day. ``path``: of the file."""

    def __init__(self, path: str, time_ns: Callable[[], int], steady_ns: Callable[[], int]) -> None:
        self._path = path
        self._time_ns = time_ns
        self._steady_ns = steady_ns
        self._looked_ns = 0
        self._ahead_ns = 0

    def time_ns(self) -> int:
        """In place of ``time.time_ns``."""
        now_ns = self._steady_ns()
        if now_ns - self._looked_ns > _LOOK_NS:
            self._looked_ns = now_ns
            with contextlib.suppress(OSError, ValueError), open(self._path) as file:
                self._ahead_ns = int(file.read()) * _NS
        return self._time_ns() + self._ahead_ns

    def time(self) -> float:
        """In place of ``time.time``."""
        return self.time_ns() / _NS


if __name__ == "__main__":
    # Modules beside this one must not be found in place of others of the same name.
    del sys.path[0]
    clock = SteppedClock(os.environ["STEP_FILE"], time.time_ns, time.monotonic_ns)
    time.time_ns, time.time = clock.time_ns, clock.time
    # Only now: the clocks of the node are those that are there when it is imported.
    from disque_tx.cli.programs.server import main

    sys.exit(main())
