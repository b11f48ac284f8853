"""The simulator finds what is wrong: every planted defect, by the seed that found it before.

Which seed that is stands in ``caught.txt``; ``python -m tests.mutants.hunt`` looks for them anew.
Every change of the product changes what a seed leads to, so where the known seed finds nothing, all
others are tried. Defects are planted into plain Python: these tests run on the package in ``src``.
"""

from __future__ import annotations

from typing import Final

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.sim.run import Run
from tests.mutants.defects import MUTANTS
from tests.mutants.hunt import caught, read_table

SEEDS_MAX: Final = 500


class MutantTests(SynchronousTestCase):
    """Defects and seeds."""

    def test_table(self) -> None:
        """At least twenty defects, and each was found within 500 seeds."""
        table = read_table()
        self.assertGreaterEqual(len(MUTANTS), 20)
        self.assertEqual({mutant.name for mutant in MUTANTS}, set(table))
        self.assertLessEqual(max(table.values()), SEEDS_MAX)

    def test_found(self) -> None:
        """A checker that became blind would let a defect pass."""
        table = read_table()
        for mutant in MUTANTS:
            seeds = [table[mutant.name], *range(1, SEEDS_MAX)]
            self.assertTrue(any(caught(mutant, seed) for seed in seeds), mutant.name)

    def test_sound(self) -> None:
        """Without a defect the same seeds find nothing, so it is the defect that was found."""
        for seed in sorted(set(read_table().values())):
            self.assertEqual([], Run(seed).execute(), seed)
