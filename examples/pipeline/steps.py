"""What the demonstration is doing, and for how long already."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from typing import Final

TOTAL: Final = 7
_EVERY_S: Final = 5.0


@contextlib.contextmanager
def step(number: int, what: str, expected: str = "") -> Iterator[None]:
    """Print what is being done, that it goes on every few seconds, and how long it took.

    ``expected``: how long it takes, where that is known.
    """
    print(f"[{number}/{TOTAL}] {what}{f' ({expected})' if expected else ''} ...", flush=True)
    begun_s = time.monotonic()
    done = threading.Event()

    def go_on() -> None:
        while not done.wait(_EVERY_S):
            print(f"      ... {time.monotonic() - begun_s:.0f} s", flush=True)

    thread = threading.Thread(target=go_on, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
    print(f"      done in {time.monotonic() - begun_s:.1f} s", flush=True)
