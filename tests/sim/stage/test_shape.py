"""What a seed determines, without running it."""

from __future__ import annotations

from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.sim.campaign import checked_run
from disque_tx.sim.faults.plan import FAULTS
from disque_tx.sim.stage.shape import DEAL, dealt_pairs, draw_shape, pairs, sure_pairs, table
from disque_tx.sim.stage.workloads import WORKLOADS
from disque_tx.sim.world.world import World


class ShapeTests(SynchronousTestCase):
    """Workloads and faults."""

    def test_every_pair(self) -> None:
        """Every pair of workload and fault occurs in any 500 seeds, so defects that need a pair are
        found."""
        self.assertEqual(len(WORKLOADS) * len(FAULTS), len(set(pairs())))
        for first in (1, 247, 10_000):
            sure = sure_pairs(range(first, first + DEAL))
            self.assertEqual(set(pairs()), set(sure))
            self.assertEqual([], [pair for pair in pairs() if sure[pair] == 0])

    def test_quiet_seeds(self) -> None:
        """Every fifth seed has no fault, and together these have every workload."""
        shapes = [draw_shape(World(seed)) for seed in range(0, 5 * len(WORKLOADS), 5)]
        self.assertEqual(set(WORKLOADS), {shape.workload for shape in shapes})
        self.assertEqual({frozenset()}, {shape.faults for shape in shapes})

    def test_planned(self) -> None:
        """The fault that a seed must have is in its plan, within the time for faults."""
        for seed in range(1, 60):
            run = checked_run(seed)
            shape = run.shape
            run.plan.schedule(0, shape.fault_s * 1_000_000, shape.first)
            planned = [fault.name for fault in run.plan.planned]
            self.assertEqual([shape.first] if shape.first else [], planned[:1], seed)
            self.assertEqual(set(), set(planned) - shape.faults, seed)

    def test_clocks_delays_and_logs(self) -> None:
        """DELAY, a log, clock steps and restarts occur together, in every 500 seeds."""
        shapes = [draw_shape(World(seed)) for seed in range(1, DEAL + 1)]
        found = [
            shape
            for shape in shapes
            if shape.appendonly
            and max(WORKLOADS[shape.workload].delay_s) > 0
            and {"clock_step", "kill", "restart"} <= shape.faults
        ]
        self.assertGreaterEqual(len(found), 10)

    def test_everything(self) -> None:
        """Clients of all clusters with seeds from 2000 on, and of the group for that, use
        schedules, dead letters, patterns and limits, and keys where they can be kept; nodes are
        restarted, stopped and cut off meanwhile."""
        for first in (2_000, 8_000_000):
            faults: set[str] = set()
            for seed in range(first, first + 100):
                run = checked_run(seed)
                workload = run.workload
                self.assertTrue(workload.schedules and workload.match > 0, seed)
                self.assertEqual(run.shape.nodes >= 3, workload.key_pool > 0, seed)
                names = {name for _, name, _ in workload.policies}
                wanted = {b"max-deliveries", b"dead-queue", b"retry-delay", b"rate"}
                if 0 not in workload.retry_s:
                    wanted.add(b"concurrency")
                self.assertLessEqual(wanted, names, seed)
                faults |= run.shape.faults
            self.assertLessEqual({"restart", "kill", "pause", "partition"}, faults)
        self.assertEqual(
            (0, False), (checked_run(1_999).workload.key_pool, checked_run(1).workload.schedules)
        )

    def test_processes(self) -> None:
        """Daemons of several processes have their machines for themselves, and all have the same
        number of them."""
        for seed in range(11_000_000, 11_000_010):
            run = checked_run(seed)
            sizes = {len(daemon.members) for daemon in run.plan.daemons}
            self.assertEqual(1, len(sizes))
            self.assertIn(sizes.pop(), (2, 3))
            hosts = [{m.host for m in daemon.members} for daemon in run.plan.daemons]
            self.assertEqual(run.shape.hosts, len(set().union(*hosts)))

    def test_passwords(self) -> None:
        """Some clusters require a password, and some leaving nodes do not return."""
        shapes = [draw_shape(World(seed)) for seed in range(1, 101)]
        self.assertEqual({True, False}, {shape.password for shape in shapes})
        staying = {shape.stay_leaving for shape in shapes if WORKLOADS[shape.workload].leaves}
        self.assertEqual({True, False}, staying)

    def test_table(self) -> None:
        """The printed table has a row per fault, and says how rare the rarest pair is."""
        text = table(range(1, DEAL + 1))
        may = dealt_pairs(range(1, DEAL + 1))
        self.assertEqual([], [name for name in FAULTS if f"\n{name} " not in text])
        self.assertIn(f"500 seeds; the rarest pair: 1/{min(may.values())}", text)

    def test_document(self) -> None:
        """The documentation contains the current table; ``--pairs`` prints it."""
        text = Path(__file__).parents[3].joinpath("docs/explanation/simulation.md").read_text()
        self.assertIn(table(range(1, DEAL + 1)), text)
