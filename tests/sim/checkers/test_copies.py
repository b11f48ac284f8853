"""Copies that are made again."""

from __future__ import annotations

import attrs
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.core.jobs.job import Job
from disque_tx.messages.records import ACTIVE
from disque_tx.sim.campaign import checked_run
from disque_tx.sim.checkers.alike import CopiesAlike
from disque_tx.sim.checkers.copies import CopiesMadeAgain, NoneMadeTwice, SpreadAgain
from disque_tx.sim.run import SimulatedRun
from tests.sim.checkers.bench import S

ID = b"D-11112222-AAAAAAAAAAAAAAAAAAAAAAAA-05a1"


class CopiesCase(SynchronousTestCase):
    """Nodes that run, and copies of one job that are put there by hand."""

    seed = 13_000_002
    bulk = "all"

    def setUp(self) -> None:
        shape = attrs.evolve(checked_run(self.seed).shape, bulk=self.bulk)
        self.run_: SimulatedRun = checked_run(self.seed, shape)
        self.machines = self.run_.machines
        for machine in self.machines:
            machine.start()

    def put(self, number: int, retry_s: int = 300, life_s: int = 3_600, nacks: int = 0) -> Job:
        """A copy for the machine with this number."""
        process = self.machines[number].process
        assert process is not None
        node = process.node
        job = Job(
            ID, b"a", b"body", (node.id,), 1, 2_000_000_000, delay_s=0, retry_s=retry_s, repl=2
        )
        job.state = ACTIVE
        job.nacks = nacks
        job.expire_ms = self.machines[number].clocks.steady_ms() + life_s * 1000
        job.life_ms = life_s * 1000
        with process.turn():
            node.jobs.add(job)
        return job


class AlikeTests(CopiesCase):
    """Copies that differ."""

    def found(self, checker: CopiesAlike) -> int:
        """The breaches after some seconds."""
        checker.watch(self.run_)
        self.run_.world.run_for(3 * S)
        return len(checker.judge(self.run_))

    def test_alike(self) -> None:
        """Two copies may differ by the seconds that copying takes from the life of a job."""
        self.put(0)
        self.put(1, life_s=3_596)
        self.assertEqual(0, self.found(CopiesAlike()))

    def test_field(self) -> None:
        """Another RETRY is not the same job."""
        self.put(0)
        self.put(1, retry_s=200)
        self.assertEqual(1, self.found(CopiesAlike()))

    def test_life(self) -> None:
        """A copy that lives longer would be delivered after the job's end."""
        self.put(0)
        self.put(1, life_s=3_620)
        self.assertEqual(1, self.found(CopiesAlike()))

    def test_counters(self) -> None:
        """A new copy counts what the others have counted before it was made."""
        checker = CopiesAlike()
        self.put(0, nacks=3)
        self.assertEqual(0, self.found(checker))
        self.put(1, nacks=2)
        self.assertEqual(1, self.found(checker))


class LackingTests(CopiesCase):
    """Copies that are not made, in a cluster whose nodes do not know each other."""

    def look(self, checker: CopiesMadeAgain | SpreadAgain) -> int:
        """The breaches after a minute, without anybody who makes copies."""
        checker.watch(self.run_)
        self.run_.world.run_for(60 * S)
        return len(checker.judge(self.run_))

    def test_lacking(self) -> None:
        """A job that has one copy of two for long breaks the promise."""
        self.put(0)
        self.assertEqual(1, self.look(CopiesMadeAgain()))

    def test_complete(self) -> None:
        """One that has two does not."""
        self.put(0)
        self.put(1)
        self.assertEqual(0, self.look(CopiesMadeAgain()))

    def test_made_twice(self) -> None:
        """More copies than were lost were made by two nodes at once; when other things happened
        nothing is said."""
        process = self.machines[0].process
        assert process is not None
        process.node.totals.copies_made = 200
        plan = self.run_.plan
        plan.copies_lost = 100
        plan.history.append((0, "one_lost", ""))
        self.assertEqual(1, len(NoneMadeTwice().judge(self.run_)))
        process.node.totals.copies_made = 105
        self.assertEqual([], NoneMadeTwice().judge(self.run_))
        process.node.totals.copies_made = 200
        plan.history.append((0, "stall", ""))
        self.assertEqual([], NoneMadeTwice().judge(self.run_))


class MixedTests(CopiesCase):
    """Nodes of ours beside originals."""

    seed = 18_000_002
    bulk = "some"

    def test_ours(self) -> None:
        """What a node of ours holds has to get its copies; what only originals hold has not."""
        self.assertTrue(self.machines[0].settings.features)
        self.assertFalse(self.machines[1].settings.features)
        checker = CopiesMadeAgain()
        checker.watch(self.run_)
        self.put(1)
        self.run_.world.run_for(60 * S)
        self.assertEqual([], checker.judge(self.run_))
        self.put(0)
        self.machines[1].kill()
        self.machines[1].start()
        self.run_.world.run_for(60 * S)
        self.assertEqual(1, len(checker.judge(self.run_)))


class SpreadTests(CopiesCase):
    """Hosts with two processes each."""

    seed = 17_000_002

    def test_one_host(self) -> None:
        """A job whose copies were on two hosts, and are on one for long, breaks the promise."""
        daemons = self.run_.plan.daemons
        first, second = daemons[0].members[:2]
        other = daemons[1].members[0]
        numbers = [self.machines.index(machine) for machine in (first, second, other)]
        checker = SpreadAgain()
        checker.watch(self.run_)
        for number in numbers:
            self.put(number)
        self.run_.world.run_for(10 * S)
        for machine in daemons[1].members:
            machine.removed = True
            machine.kill()
            self.machines.remove(machine)
        self.run_.world.run_for(60 * S)
        self.assertEqual(1, len(checker.judge(self.run_)))

    def test_shape(self) -> None:
        """One of the hosts may be lost, and two are left."""
        shape = checked_run(self.seed).shape
        self.assertEqual((3, 6, "all"), (shape.hosts, shape.nodes, shape.bulk))
        self.assertEqual("some", checked_run(18_000_001).shape.bulk)
