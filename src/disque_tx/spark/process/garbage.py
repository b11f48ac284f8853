"""Python's search for garbage, which waits while a batch is made."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Do not search for cycles of objects meanwhile. The jobs of a batch are hundreds of thousands
    of objects that stay, without a cycle among them; to search them again and again takes longer
    than to fetch them."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
