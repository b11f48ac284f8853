"""How the process of a node uses memory."""

from __future__ import annotations

import ctypes
import gc
import weakref
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.services.machine.memory import map_large_blocks, tame_collector

_MIB = 1024 * 1024


def mapped_kib() -> int:
    """How much memory the process has mapped."""
    lines = Path("/proc/self/status").read_text().splitlines()
    (size,) = [line.split()[1] for line in lines if line.startswith("VmSize:")]
    return int(size)


class Knot:
    """Refers to itself."""

    def __init__(self) -> None:
        self.myself = self


class CollectorTests(SynchronousTestCase):
    """``tame_collector``."""

    def setUp(self) -> None:
        self.addCleanup(gc.set_threshold, *gc.get_threshold())
        self.addCleanup(gc.unfreeze)
        self.addCleanup(gc.enable)

    def test_start(self) -> None:
        """What the start of a node has left behind takes no memory for the rest of its life: it is
        collected, and only then is the rest taken out of the collector's sight."""
        gc.disable()
        knot = weakref.ref(Knot())
        tame_collector()
        self.assertIsNone(knot())
        self.assertGreater(gc.get_freeze_count(), 1_000)

    def test_later(self) -> None:
        """The oldest objects, which are jobs, are as good as never walked over."""
        tame_collector()
        self.assertEqual((5_000, 5, 1_000_000_000), gc.get_threshold())


class _Library:
    """A C library whose ``mallopt`` gives these answers, and notes what it was asked."""

    def __init__(self, *answers: int) -> None:
        self.asked: list[tuple[int, int]] = []
        self._answers = list(answers)

    def mallopt(self, parameter: int, value: int) -> int:
        """Change a parameter; whether that was done."""
        self.asked.append((parameter, value))
        return self._answers.pop(0)


class LargeBlocksTests(SynchronousTestCase):
    """``map_large_blocks``."""

    def test_parameters(self) -> None:
        """Blocks of 4 MiB and more are mapped, and twice as much may lie free at the end of the
        heap; when the C library refuses one of the two, the caller knows."""
        for answers, expected in (((1, 1), True), ((0, 1), False), ((1, 0), False)):
            library = _Library(*answers)
            self.patch(ctypes, "CDLL", lambda _name, found=library: found)
            self.assertEqual(expected, map_large_blocks())
            # M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of mallopt(3).
            self.assertEqual([(-1, 8 * _MIB), (-3, 4 * _MIB)], library.asked)

    def test_other_library(self) -> None:
        """A C library without these parameters is used as it is."""
        self.patch(ctypes, "CDLL", lambda _name: object())
        self.assertFalse(map_large_blocks())

    def test_given_back(self) -> None:
        """What a table has outgrown is given back, also when large blocks were freed before, and
        small ones lie behind it."""
        self.assertTrue(map_large_blocks())
        # Holes that other tests have left in the heap are filled first.
        filled = []
        before = mapped_kib()
        while mapped_kib() - before < 23 * 1024:
            filled.append(bytearray(24 * _MIB))
        for _ in range(3):
            large = bytearray(24 * _MIB)
            behind = [bytearray(100_000) for _ in range(20)]
            with_large = mapped_kib()
            del large
            self.assertGreater(with_large - mapped_kib(), 23 * 1024)
            del behind
