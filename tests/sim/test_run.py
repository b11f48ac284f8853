"""A run from its seed to its result."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.sim.campaign import SeedOutcome, Summary, checked_run, minimise, outcome
from disque_tx.sim.stage.history import Added, RecordedDelivery, RunHistory
from disque_tx.sim.stage.shape import BULK, Shape, draw_shape
from disque_tx.sim.stage.workloads import GROUPS, WORKLOADS
from disque_tx.sim.world.world import World


def shape(**changes: object) -> Shape:
    """A small run without faults."""
    made = Shape(
        nodes=3,
        clients=4,
        workload="total-queue",
        faults=frozenset(),
        fault_s=5,
        intensity=1.0,
        pace_ms=200,
        queues=1,
        appendonly=False,
        appendfsync="no",
    )
    for name, value in changes.items():
        setattr(made, name, value)
    return made


class RunTests(SynchronousTestCase):
    """A single run."""

    def test_every_workload(self) -> None:
        """Without faults no promise is broken, and jobs are exchanged between clients."""
        names = [name for workloads in (WORKLOADS, *GROUPS.values()) for name in workloads]
        for name in names:
            run = checked_run(5, shape(workload=name))
            self.assertEqual([], run.execute(), name)
            self.assertGreater(len(list(run.history.accepted())), 5, name)
            self.assertGreater(len(run.history.delivered), 5, name)

    def test_repeats(self) -> None:
        """The same seed gives the same run, another one another run."""
        faulty = shape(faults=frozenset({"kill", "reset", "message_loss"}))
        hashes = []
        for seed in (7, 7, 8):
            run = checked_run(seed, faulty)
            run.execute()
            hashes.append(run.world.trace_hash())
        self.assertEqual(hashes[0], hashes[1])
        self.assertNotEqual(hashes[0], hashes[2])

    def test_clocks_and_restarts(self) -> None:
        """Clocks are set while nodes with logs are down: no job is early, late by more than its
        DELAY, or lost. Seeds rarely draw this combination."""
        for workload in ("ttl-and-delay", "once-delayed"):
            for seed in range(1, 9):
                faults = frozenset({"clock_step", "kill", "restart"})
                stepped = shape(
                    workload=workload,
                    faults=faults,
                    fault_s=20,
                    clients=8,
                    appendonly=True,
                    appendfsync="always",
                )
                self.assertEqual([], checked_run(seed, stepped).execute(), (workload, seed))

    def test_bulks(self) -> None:
        """Nodes send bulks to each other where both can take them, and never to others; a cluster
        keeps its promises whoever can, also when messages are lost."""
        for faults in ((), ("message_loss",)):
            sent = {}
            for who in sorted(set(BULK)):
                mixed = shape(
                    nodes=4, clients=8, pace_ms=40, bulk=who, faults=frozenset(faults), fault_s=5
                )
                run = checked_run(11, mixed)
                self.assertEqual([], run.execute(), (who, faults))
                sent[who] = run.world.counters["bus.BULK"]
            self.assertEqual(0, sent["none"])
            self.assertGreater(sent["some"], 0)
            self.assertGreater(sent["all"], sent["some"])

    def test_alone(self) -> None:
        """A single node keeps its promises."""
        self.assertEqual([], checked_run(9, shape(nodes=1)).execute())

    def test_shapes_differ(self) -> None:
        """Seeds draw clusters of all sizes, and every workload."""
        shapes = [draw_shape(World(seed)) for seed in range(300)]
        self.assertEqual({1, 2, 3, 4, 5, 7}, {drawn.nodes for drawn in shapes})
        self.assertEqual(set(WORKLOADS), {drawn.workload for drawn in shapes})
        self.assertEqual(20, max(drawn.clients for drawn in shapes))


class HistoryTests(SynchronousTestCase):
    """The recorded history."""

    def test_duplicates(self) -> None:
        """Only deliveries after the first count as duplicates."""
        history = RunHistory()
        for body in (b"a", b"b", b"a", b"a"):
            history.delivered.append(RecordedDelivery(body, b"D", b"q", b"n", 1, 2, 0, 0))
        self.assertEqual(2, history.duplicates())
        self.assertEqual([3, 1], [len(each) for each in history.by_body().values()])

    def test_accepted(self) -> None:
        """A job counts as accepted once its client has the ID."""
        history = RunHistory()
        history.added[b"a"] = Added(b"a", b"q", b"n", 0, 1, 1, 10, 0, False)
        history.added[b"b"] = Added(b"b", b"q", b"n", 0, 1, 1, 10, 0, False, accepted_us=5)
        self.assertEqual([b"b"], [added.body for added in history.accepted()])


class CampaignTests(SynchronousTestCase):
    """Many runs."""

    def test_summary(self) -> None:
        """Runs are summarized, failures kept, and faults that never occurred are listed."""
        summary = Summary()
        one = outcome(1)
        summary.add(one)
        broken = SeedOutcome(4, one.shape, ("broken",), one.counters, "", 1, 4, 1)
        summary.add(broken)
        self.assertEqual([broken], summary.failed)
        self.assertEqual(2 * one.counters["bus.PING"], summary.counters["bus.PING"])
        self.assertAlmostEqual((one.duplicates + 1) / (one.delivered + 4), summary.rate(), places=9)
        summary.counters["fault.kill"] = 0
        self.assertIn("fault.kill", summary.missing())
        self.assertNotIn("bus.PING", summary.missing())
        self.assertIn("bus.PING", summary.table())

    def test_minimise(self) -> None:
        """A run that always fails is reduced to the smallest possible one."""
        big = shape(clients=20, fault_s=40, faults=frozenset({"kill", "reset"}), queues=3)
        tried: list[Shape] = []

        def always(seed: int, candidate: Shape) -> bool:
            tried.append(candidate)
            return True

        small = minimise(1, big, 100, always)
        self.assertEqual(
            (2, 2, frozenset(), 1), (small.clients, small.nodes, small.faults, small.queues)
        )
        self.assertLess(len(tried), 30)
        self.assertEqual(big, minimise(1, big, 100, lambda seed, candidate: False))
