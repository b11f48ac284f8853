"""The simulator finds every planted defect, by the seed in ``caught.txt``.

A change of the product changes the runs of all seeds, so sometimes a seed no longer finds its
defect; then another one must be searched for. Defects are planted into uncompiled Python: these
tests run on the package in ``src``.
"""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.sim.campaign import checked_run
from tests.mutants import hunt
from tests.mutants.defects import MUTANTS, Mutant
from tests.mutants.hunt import SEEDS_MAX, caught, healthy, read_table, small


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

    def test_found(self) -> None:
        """A checker that stopped working would let its defect pass."""
        table = read_table()
        blind = [m for m in MUTANTS if m.name in table and not caught(m, table[m.name])]
        self.assertEqual(
            [], [f"{m.name} ({m.what}): seed {table[m.name]}" for m in blind], _advice(blind)
        )

    def test_sound(self) -> None:
        """Without a defect the same runs are clean, so the violation was caused by the defect."""
        table = read_table()
        for seed, task in sorted({(table[m.name], m.task) for m in MUTANTS}, key=repr):
            self.assertEqual((), healthy(seed, task), f"seed {seed}, {small(seed, task)}")

    def test_failing_seed_finds_nothing(self) -> None:
        """A seed that fails without a defect proves nothing and does not count."""
        mutant = next(m for m in MUTANTS if m.name == "short-body")
        seed = read_table()[mutant.name]
        self.patch(hunt, "healthy", lambda *_: ("broken",))
        self.assertEqual("", caught(mutant, seed))


def _advice(blind: list[Mutant]) -> str:
    names = " ".join(mutant.name for mutant in blind)
    return (
        "These seeds do not find these defects any more. If a change of the product led the seeds"
        f" elsewhere, look for new ones: python -m tests.mutants.hunt {SEEDS_MAX} {names} (it"
        " writes tests/mutants/caught.txt). If none is found, a checker has become blind."
    )
