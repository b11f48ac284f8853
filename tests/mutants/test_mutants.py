"""The simulator finds every planted defect, by the seed in ``caught.txt``.

A change of the product changes the runs of all seeds, so sometimes a seed no longer finds its
defect; then another one must be searched for. Defects are planted into uncompiled Python: these
tests run on the package in ``src``.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.sim.campaign import checked_run
from disque_tx.sim.stage.shape import Pair
from tests.mutants import hunt
from tests.mutants.defects import MUTANTS, Mutant
from tests.mutants.hunt import SEEDS_MAX, caught, found, healthy, read_table, small


class MutantTests(SynchronousTestCase):
    """Defects and their seeds."""

    def test_table(self) -> None:
        """There are at least twenty defects, each with a seed within the limit, and each new
        checker has one."""
        table = read_table()
        self.assertGreaterEqual(len(MUTANTS), 20)
        self.assertEqual({mutant.name for mutant in MUTANTS}, set(table))
        self.assertLessEqual(max(table.values()), SEEDS_MAX)
        checkers = {type(checker).__name__ for checker in checked_run(1).checkers}
        planted = {mutant.checker for mutant in MUTANTS if mutant.checker}
        self.assertLessEqual(planted, checkers)
        wanted = {
            "WorkingRespected",
            "NotAfterAck",
            "PauseRespected",
            "OldestFirst",
            "CountersMatch",
        }
        wanted |= {"TotalsMatch", "PasswordRequired", "HostsDiffer"}
        self.assertLessEqual(wanted, planted)

    def test_failing_seed_finds_nothing(self) -> None:
        """A seed that fails without a defect proves nothing and does not count."""
        mutant = next(m for m in MUTANTS if m.name == "short-body")
        seed = read_table()[mutant.name]
        self.patch(hunt, "healthy", lambda *_: ("broken",))
        self.assertEqual("", caught(mutant, seed))


class SoundTests(SynchronousTestCase):
    """The runs of all seeds without a defect: they are clean, so that a violation in the run with a
    defect was caused by it."""

    def run_clean(self, seed: int, task: Pair | None) -> None:
        """The simulator finds nothing."""
        self.assertEqual((), healthy(seed, task), f"seed {seed}, {small(seed, task)}")


class FoundTests(SynchronousTestCase):
    """The runs with a defect. A checker that stopped working would let its defect pass."""

    def find(self, mutant: Mutant) -> None:
        """The simulator reports a broken promise."""
        seed = read_table()[mutant.name]
        self.assertTrue(found(mutant, seed), f"{mutant.what}: seed {seed}\n{_advice(mutant)}")


def _name(*words: object) -> str:
    return "test_" + re.sub(r"\W+", "_", "_".join(map(str, words))).strip("_")


def _add_tests() -> None:
    """A test for each defect and for each run without one, so that they run beside each other."""
    table = read_table()
    for mutant in MUTANTS:
        setattr(FoundTests, _name(mutant.name), _calling(FoundTests.find, mutant))
        seed, task = table.get(mutant.name, 1), mutant.task
        name = _name(*(task or ("any",)), seed)
        setattr(SoundTests, name, _calling(SoundTests.run_clean, seed, task))


def _calling(method: Callable[..., None], *args: object) -> Callable[[SynchronousTestCase], None]:
    # Trial takes functions for tests, not every callable.
    return lambda test: method(test, *args)


def _advice(mutant: Mutant) -> str:
    return (
        "This seed does not find this defect any more. If a change of the product led the seed"
        f" elsewhere, look for a new one: python -m tests.mutants.hunt {SEEDS_MAX} {mutant.name}"
        " (it writes tests/mutants/caught.txt). If none is found, a checker has become blind."
    )


_add_tests()
