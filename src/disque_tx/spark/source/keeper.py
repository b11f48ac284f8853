"""The acknowledgement of the last batch, when the process that would do it is killed.

A batch is acknowledged when Spark asks for the next one. When a query is stopped, Spark does not
ask again: it kills the process of the source. So a small process beside it waits for its end, and
acknowledges the last batch then, if Spark has committed it. To look at the checkpoint from time to
time instead would be late, and costs a listing each time.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from typing import IO, Any, Final

_FIRST_FILE: Final = 3
_FILES_MAX: Final = 1 << 16


class Keeper:
    """A process that calls ``settle`` with the last thing it was told, when this one ends.

    To be made before any thread is.
    """

    def __init__(self, settle: Callable[[Any], None]) -> None:
        read_end, write_end = os.pipe()
        self._process = os.fork()
        if not self._process:
            _keep(read_end, settle)
        os.close(read_end)
        self._told: IO[bytes] = os.fdopen(write_end, "wb")

    def tell(self, what: object) -> None:
        """Replace what was told before."""
        pickle.dump(what, self._told)
        self._told.flush()

    def close(self) -> None:
        """Let it settle, and wait for that."""
        self._told.close()
        os.waitpid(self._process, 0)


def _keep(read_end: int, settle: Callable[[Any], None]) -> None:
    """The life of the other process. It keeps nothing open that others wait for the end of, and is
    not ended with their process group."""
    try:
        os.setsid()
        os.closerange(_FIRST_FILE, read_end)
        os.closerange(read_end + 1, _FILES_MAX)
        last = _last(read_end)
        if last is not None:
            settle(last)
    finally:
        os._exit(0)


def _last(read_end: int) -> Any:
    last = None
    with os.fdopen(read_end, "rb") as told:
        while True:
            try:
                last = pickle.load(told)
            except (EOFError, pickle.UnpicklingError):
                return last
