"""Counters and their rates."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.commands.base.stats import Stats


class StatsTests(SynchronousTestCase):
    """Rates per second, from counters that only grow."""

    def test_steady_rate(self) -> None:
        """After 16 samples of a constant load the rates show that load."""
        stats = Stats()
        stats.tick(1000)
        for turn in range(1, 17):
            stats.commands_processed += 50
            stats.net_input_bytes += 1024
            stats.tick(1000 + turn * 100)
        self.assertEqual(500.0, stats.ops.per_second())
        self.assertEqual(10240.0, stats.net_input.per_second())
        self.assertEqual(0.0, stats.net_output.per_second())

    def test_sampled_every_100_ms(self) -> None:
        """More frequent ticks change nothing, a late tick is averaged over its time."""
        stats = Stats()
        stats.tick(0)
        stats.commands_processed = 100
        stats.tick(99)
        self.assertEqual(0.0, stats.ops.per_second())
        stats.tick(1000)
        self.assertEqual(100.0 / 16, stats.ops.per_second())

    def test_old_samples_fade(self) -> None:
        """A burst no longer counts after 16 samples."""
        stats = Stats()
        stats.tick(0)
        stats.commands_processed = 1000
        for turn in range(1, 18):
            stats.tick(turn * 100)
        self.assertEqual(0.0, stats.ops.per_second())

    def test_reset(self) -> None:
        """A reset clears counters and rates, and no rate is negative afterwards."""
        stats = Stats()
        stats.tick(0)
        stats.commands_processed = stats.connections_received = stats.rejected_connections = 70
        stats.net_input_bytes = stats.net_output_bytes = stats.latest_fork_us = 70
        stats.tick(100)
        stats.reset()
        stats.tick(200)
        counters = (
            stats.commands_processed,
            stats.connections_received,
            stats.rejected_connections,
            stats.net_input_bytes,
            stats.net_output_bytes,
            stats.latest_fork_us,
        )
        self.assertEqual((0, 0, 0, 0, 0, 0), counters)
        self.assertEqual((0.0, 0.0), (stats.ops.per_second(), stats.net_input.per_second()))
