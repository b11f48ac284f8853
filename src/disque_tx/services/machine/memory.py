"""How the process of a node uses memory: the collector, and the allocator of the C library."""

from __future__ import annotations

import ctypes
import gc
from typing import Final

#: Blocks from this size on are mapped by themselves.
_MAPPED_BYTES: Final = 4 * 1024 * 1024
#: How much may lie free at the end of the heap, as glibc would set it.
_TRIM_BYTES: Final = 2 * _MAPPED_BYTES
# Parameters of mallopt(3).
_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3


def tame_collector() -> None:
    """Jobs hold no cycles: the collector must not walk over all of them again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(5_000, 5, 1_000_000_000)


def map_large_blocks() -> bool:
    """Have large blocks mapped by themselves; whether that can be had here.

    glibc takes ever larger ones from its heap, once such were freed. A table of a million jobs that
    grows is then copied as a whole, and leaves a hole of its size that nothing else fits into.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    trimmed = mallopt(_M_TRIM_THRESHOLD, _TRIM_BYTES)
    mapped = mallopt(_M_MMAP_THRESHOLD, _MAPPED_BYTES)
    return bool(trimmed and mapped)
