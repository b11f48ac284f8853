"""Tests for :mod:`disque_tx.sim.world.world`."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.sim.world.world import World


class WorldTests(SynchronousTestCase):
    """Time, random numbers and memory."""

    def test_order(self) -> None:
        """Actions that are due at the same time run in the order of their scheduling."""
        world = World(1)
        seen: list[str] = []
        for name in ("b", "a", "c"):
            world.at(5, lambda n=name: seen.append(n))  # type: ignore[misc]
        world.at(2, lambda: seen.append("first"))
        world.run_until(10)
        self.assertEqual(["first", "b", "a", "c"], seen)
        self.assertEqual(10, world.now_us)

    def test_not_yet(self) -> None:
        """Actions after the requested time have not run, and still will."""
        world = World(1)
        seen: list[int] = []
        world.at(20, lambda: seen.append(world.now_us))
        world.run_for(19)
        self.assertEqual([], seen)
        world.run_for(1)
        self.assertEqual([20], seen)

    def test_cancel(self) -> None:
        """A cancelled action does not run, and cancelling it again does no harm."""
        world = World(1)
        seen: list[int] = []
        timer = world.at(5, lambda: seen.append(1))
        timer.cancel()
        timer.cancel()
        world.run_until(10)
        self.assertEqual([], seen)

    def test_past(self) -> None:
        """An invalid time is reported where it is passed."""
        with self.assertRaises(ValueError):
            World(1).at(-1, lambda: None)

    def test_random(self) -> None:
        """Each name has its own random numbers, so using more of one source does not affect
        others."""
        one, other = World(7), World(7)
        one.random("network").random()
        self.assertEqual(one.random("disk").random(), other.random("disk").random())
        self.assertIs(one.random("disk"), one.random("disk"))
        self.assertNotEqual(World(7).random("disk").random(), World(8).random("disk").random())

    def test_trace(self) -> None:
        """The hash distinguishes runs; the lines can be read by people."""
        one, other = World(1), World(2)
        one.keep_trace = True
        for world in (one, other):
            world.trace("kill", b"a")
        self.assertEqual(one.trace_hash(), other.trace_hash())
        self.assertEqual(["0 kill b'a'"], list(one.lines))
        other.trace("start")
        self.assertNotEqual(one.trace_hash(), other.trace_hash())

    def test_failure(self) -> None:
        """A failure is kept with its time, and ends the run if requested."""
        world = World(1)
        world.stop_at_failure = True
        world.at(1_500_000, lambda: world.fail("lost a job"))
        world.at(2_000_000, lambda: self.fail("the world should have stopped"))
        world.run_until(3_000_000)
        self.assertEqual(["at 1.500000 s: lost a job"], world.failures)
        self.assertTrue(world.stopped)
