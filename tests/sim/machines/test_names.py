"""Nodes that find each other by a name, as the simulated world answers it."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.core.nodes.discovery import ADDRESSES_MAX
from disque_tx.sim.machines.interfaces import Answer, MachineSettings
from disque_tx.sim.machines.machine import Machine
from disque_tx.sim.machines.names import LIES, NameService
from disque_tx.sim.stage.naming import give_names, named, strangers
from disque_tx.sim.world.network import Network
from disque_tx.sim.world.world import World
from tests.sim.machines.test_process import PORT, SECOND

#: Three intervals.
JOINED_US = 15 * SECOND


class NamedCase(SynchronousTestCase):
    """Three machines that know a name, and others of another cluster."""

    def setUp(self) -> None:
        self.world = World(3)
        self.network = Network(self.world)
        settings = named(MachineSettings())
        self.machines = [
            Machine(self.world, self.network, b"10.0.0.%d" % number, PORT, settings)
            for number in (1, 2, 3)
        ]
        self.others = strangers(self.world, self.network, settings)
        self.names: NameService = give_names(self.world, self.machines, self.others)

    def start(self) -> None:
        """All machines start at once."""
        for machine in (*self.machines, *self.others):
            machine.start()

    def sizes(self) -> list[int]:
        """How many nodes each of ours has in its table."""
        nodes = [machine.process.node for machine in self.machines if machine.process is not None]
        return [int(node.membership.size) for node in nodes]


class NameServiceTests(NamedCase):
    """What the name is answered."""

    def answer(self, lie: str = "") -> Answer:
        """The answer while this lie is told, if any."""
        answers: list[Answer] = []
        if lie:
            self.names.begin(lie)
        self.names.look_up(answers.append)
        self.world.run_for(5 * SECOND)
        if lie:
            self.names.end(lie)
        self.assertEqual(1, len(answers))
        return answers[0]

    def hosts(self, lie: str = "") -> set[bytes]:
        """The same, of which there must be addresses."""
        answer = self.answer(lie)
        self.assertIsInstance(answer, list)
        return {place[0] for place in answer if not isinstance(place, str)}

    def test_honest(self) -> None:
        """The nodes that run are listed, and no others."""
        self.start()
        self.machines[1].kill()
        self.assertEqual({b"10.0.0.1", b"10.0.0.3"}, self.hosts())
        self.assertEqual(0, self.names.honest_us)

    def test_lies(self) -> None:
        """Each lie is one; afterwards the answer is right again, and it is known since when."""
        self.start()
        right = self.hosts()
        for lie in ("silent", "empty"):
            self.assertIsInstance(self.answer(lie), str, lie)
        self.assertLess(self.hosts("partial"), right)
        self.assertGreater(self.hosts("foreign"), right)
        self.assertGreater(len(self.hosts("crowded")), ADDRESSES_MAX)
        self.machines[0].kill()
        self.assertGreater(self.hosts("stale"), self.hosts())
        self.assertEqual(self.world.now_us - 5 * SECOND, self.names.honest_us)
        self.assertEqual({"silent", "empty", "partial", "stale", "foreign", "crowded"}, set(LIES))


class JoiningTests(NamedCase):
    """What nodes make of it."""

    def test_join(self) -> None:
        """Nodes that know only the name become one cluster, without those of the other one, which
        are listed as well."""
        self.names.begin("foreign")
        self.start()
        self.world.run_for(JOINED_US)
        self.assertEqual([3, 3, 3], self.sizes())
        self.assertEqual([], self.world.failures)

    def test_moved(self) -> None:
        """Nodes all of whose addresses change find each other at the new ones, with their IDs."""
        self.start()
        self.world.run_for(JOINED_US)
        before = [machine.identities for machine in self.machines]
        for machine in self.machines:
            machine.stop()
            machine.leave_address()
        for number, machine in enumerate(self.machines, 1):
            machine.move(b"10.5.0.%d" % number)
            machine.start()
        self.world.run_for(JOINED_US)
        self.assertEqual([3, 3, 3], self.sizes())
        self.assertEqual(before, [machine.identities for machine in self.machines])
        for machine in self.machines:
            assert machine.process is not None
            seen = {entry.ip for entry in machine.process.node.membership.nodes.values()}
            self.assertLessEqual(seen - {machine.ip}, {b"10.5.0.1", b"10.5.0.2", b"10.5.0.3"})

    def test_replaced(self) -> None:
        """A machine that lost its disk comes as another node, which joins by the name alone; the
        others forget the one that is gone."""
        self.start()
        self.world.run_for(JOINED_US)
        lost = self.machines[2]
        lost.kill(power=True)
        lost.disk.wipe()
        self.world.run_for(2 * SECOND)
        lost.start()
        self.world.run_for(60 * SECOND)
        self.assertEqual(2, len(lost.identities))
        self.assertEqual([3, 3, 3], self.sizes())
