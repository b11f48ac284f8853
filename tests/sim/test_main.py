"""The simulator's command line."""

from __future__ import annotations

from click.testing import CliRunner, Result
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.sim import __main__ as program
from disque_tx.sim.checkers.jobs import UniqueIds


class MainTests(SynchronousTestCase):
    """What people type and see."""

    def call(self, *words: str) -> Result:
        """Run the command."""
        return CliRunner().invoke(program.main, list(words))

    def test_one(self) -> None:
        """The output for one seed describes the run, and says that no promise was broken."""
        result = self.call("--seed", "1")
        self.assertEqual(0, result.exit_code, result.output)
        self.assertIn("seed 1: ", result.output)
        self.assertNotIn("BROKEN", result.output)

    def test_trace(self) -> None:
        """The trace of a seed is the same every time, line by line."""
        first, second = self.call("--seed", "1", "--trace"), self.call("--seed", "1", "--trace")
        self.assertGreater(len(first.output.splitlines()), 1_000)
        self.assertEqual(first.output, second.output)

    def test_campaign(self) -> None:
        """A campaign prints its table, and includes seeds that failed once."""
        self.patch(program, "known_seeds", lambda: [10])
        result = self.call("--seeds", "11-11")
        self.assertEqual(0, result.exit_code, result.output)
        self.assertIn("bus.REPLJOB", result.output)
        self.assertIn("2 runs, 0 failed", result.output)

    def test_broken(self) -> None:
        """A broken promise gives exit status 1, what is broken, and the command that replays it,
        at once and again at the end."""
        self.patch(program, "known_seeds", list)
        self.patch(UniqueIds, "judge", lambda checker, run: ["an ID of two jobs"])
        result = self.call("--seeds", "1-1", "--minimise", "0")
        self.assertEqual(1, result.exit_code)
        self.assertIn("python -m disque_tx.sim --seed 1\n  BROKEN  an ID", result.output)
        self.assertIn("Failed: python -m disque_tx.sim --seed 1", result.output)
        self.assertEqual(1, self.call("--seed", "1").exit_code)

    def test_smaller(self) -> None:
        """The first failure is shown again, reduced as far as possible."""
        self.patch(program, "known_seeds", list)
        self.patch(UniqueIds, "judge", lambda checker, run: ["an ID of two jobs"])
        result = self.call("--seeds", "1-1", "--minimise", "3")
        self.assertIn("Seed 1 made smaller:", result.output)

    def test_pairs(self) -> None:
        """The table of workloads and faults is printed at once, and is always the same."""
        result = self.call("--pairs", "--seeds", "1-100")
        self.assertEqual(0, result.exit_code, result.output)
        self.assertIn("100 seeds; the rarest pair: 0/", result.output)
        self.assertEqual(result.output, self.call("--pairs", "--seeds", "1-50,51-100").output)
        self.assertEqual(self.call("--pairs").output, self.call("--pairs").output)

    def test_mistakes(self) -> None:
        """Invalid arguments are refused with a hint."""
        for words in (
            (),
            ("--seed", "1", "--seeds", "1-2"),
            ("--seeds", "x"),
            ("--seeds", "1-2,x"),
        ):
            result = self.call(*words)
            self.assertEqual(2, result.exit_code)
            self.assertIn("Error", result.output)

    def test_known_seeds(self) -> None:
        """Seeds that failed once are listed with a reason."""
        for line in program.SEEDS.read_text().splitlines():
            if line and not line.startswith("#"):
                self.assertGreater(len(line.split()), 1, line)
        self.assertEqual(len(program.known_seeds()), len(set(program.known_seeds())))
