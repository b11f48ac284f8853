"""Tests for :mod:`disque_tx.sim.world.world`."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.sim.world.world import DRIFT_PPM_MAX, MachineClocks, World

SECOND = 1_000_000


class ClocksTests(SynchronousTestCase):
    """Clocks with all kinds of errors."""

    def setUp(self) -> None:
        self.world = World(3)
        self.clocks = MachineClocks(self.world, "a")

    def test_drift(self) -> None:
        """Both clocks drift at the configured rate, and changing it causes no jump."""
        self.clocks.drift(500)
        steady_us, wall_us = self.clocks.steady_us(), self.clocks.wall_us()
        self.world.run_for(1000 * SECOND)
        self.assertEqual(1000 * SECOND + 500_000, self.clocks.steady_us() - steady_us)
        self.assertEqual(1000 * SECOND + 500_000, self.clocks.wall_us() - wall_us)
        before_us = self.clocks.steady_us()
        self.clocks.drift(-500)
        self.assertEqual(before_us, self.clocks.steady_us())

    def test_too_fast(self) -> None:
        """No clock drifts more than nodes must tolerate."""
        with self.assertRaises(ValueError):
            self.clocks.drift(DRIFT_PPM_MAX + 1)

    def test_steady(self) -> None:
        """Steps of the wall clock do not affect the monotonic clock, which never goes backwards."""
        last_us = self.clocks.steady_us()
        random = self.world.random("test")
        for _ in range(200):
            self.clocks.step(random.randint(-3600 * SECOND, 3600 * SECOND))
            self.clocks.drift(random.randint(-DRIFT_PPM_MAX, DRIFT_PPM_MAX))
            self.world.run_for(random.randint(1, 2 * SECOND))
            self.assertGreaterEqual(self.clocks.steady_us(), last_us)
            last_us = self.clocks.steady_us()

    def test_step(self) -> None:
        """The wall clock shows the time it was set to."""
        wall_us = self.clocks.wall_us()
        self.clocks.step(-3600 * SECOND)
        self.assertEqual(wall_us - 3600 * SECOND, self.clocks.wall_us())

    def test_restart(self) -> None:
        """A new process has another zero, and no time is ever 0."""
        before_us, wall_us = self.clocks.steady_us(), self.clocks.wall_us()
        self.clocks.restart()
        self.assertNotEqual(before_us, self.clocks.steady_us())
        self.assertGreater(self.clocks.steady_ms(), 0)
        self.assertEqual(wall_us, self.clocks.wall_us())

    def test_delay(self) -> None:
        """Waiting for a time of the monotonic clock never ends early."""
        for ppm in (-DRIFT_PPM_MAX, 0, DRIFT_PPM_MAX):
            self.clocks.drift(ppm)
            for delay_ms in (0, 1, 100, 86_400_000):
                due_ms = self.clocks.steady_ms() + delay_ms
                self.world.run_for(self.clocks.true_delay_us(due_ms))
                self.assertGreaterEqual(self.clocks.steady_ms(), due_ms)
                self.assertLess(self.clocks.steady_ms(), due_ms + 2)
