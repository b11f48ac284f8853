"""LATENCY: the history of slow events, its graph and its advice."""

from __future__ import annotations

from disque_tx.commands.base.latency import SAMPLES_MAX, LatencyMonitor, age_text
from disque_tx.commands.server.diagnosis import latency
from tests.commands.desk import UNIX_S, DeskCase


class LatencyTests(DeskCase):
    """The command, on samples that the server took."""

    def watch(self) -> LatencyMonitor:
        """A monitor that samples every event of at least 10 ms."""
        self.server.latency.threshold_ms = 10
        return self.server.latency

    def test_off_by_default(self) -> None:
        """Without a threshold nothing is sampled."""
        self.server.latency.sample(b"command", 1, 10_000)
        self.assertEqual([], self.call(latency, b"LATENCY", b"LATEST"))

    def test_threshold(self) -> None:
        """An event that takes exactly the threshold is sampled."""
        monitor = self.watch()
        monitor.sample(b"command", 1, 9)
        monitor.sample(b"command", 2, 10)
        self.assertEqual([[2, 10]], self.call(latency, b"latency", b"history", b"command"))

    def test_one_sample_per_second(self) -> None:
        """Within a second only the longest is kept, and it counts for the all-time maximum."""
        monitor = self.watch()
        for duration_ms in (20, 90, 30):
            monitor.sample(b"fork", 7, duration_ms)
        self.assertEqual([[b"fork", 7, 90, 90]], self.call(latency, b"LATENCY", b"LATEST"))
        self.assertEqual([[7, 90]], self.call(latency, b"LATENCY", b"HISTORY", b"fork"))

    def test_history_is_bounded(self) -> None:
        """Old samples are dropped, but the all-time maximum includes them."""
        monitor = self.watch()
        monitor.sample(b"fork", 0, 500)
        for second in range(1, SAMPLES_MAX + 1):
            monitor.sample(b"fork", second, 10)
        history = self.call(latency, b"LATENCY", b"HISTORY", b"fork")
        self.assertEqual([[second, 10] for second in range(1, SAMPLES_MAX + 1)], history)
        latest = self.call(latency, b"LATENCY", b"LATEST")
        self.assertEqual([[b"fork", SAMPLES_MAX, 10, 500]], latest)

    def test_reset(self) -> None:
        """Series are forgotten by name, in any letter case, or all at once."""
        monitor = self.watch()
        for event in (b"fork", b"command", b"aof-write"):
            monitor.sample(event, 1, 10)
        self.assertEqual(1, self.call(latency, b"LATENCY", b"RESET", b"FORK", b"unknown"))
        self.assertEqual(2, self.call(latency, b"LATENCY", b"RESET"))
        self.assertEqual(0, self.call(latency, b"LATENCY", b"RESET"))

    def test_graph(self) -> None:
        """The graph that people read: levels from the lowest to the highest, ages downwards."""
        monitor = self.watch()
        for age_s, duration_ms in ((7200, 10), (61, 49), (15, 70), (1, 130)):
            monitor.sample(b"command", UNIX_S - age_s, duration_ms)
        expected = (
            b"command - high 130 ms, low 10 ms (all time high 130 ms)\n"
            + b"-" * 80
            + b"\n"
            + b"   #\n"
            + b"  _|\n"
            + b" _||\n"
            + b"_|||\n"
            + b"    \n"
            + b"2111\n"
            + b"hm5s\n"
            + b"  s \n"
        )
        self.assertEqual(expected, self.call(latency, b"LATENCY", b"GRAPH", b"command"))

    def test_graph_breaks_after_80(self) -> None:
        """A long history is drawn in bands that fit a terminal."""
        monitor = self.watch()
        for age_s in range(81, 0, -1):
            monitor.sample(b"fork", UNIX_S - age_s, 10)
        drawn = self.call(latency, b"LATENCY", b"GRAPH", b"fork")
        assert isinstance(drawn, bytes)
        widths = [len(line) for line in drawn.split(b"\n")[2:-1]]
        self.assertEqual([80] * 8 + [0] + [1] * 7, widths)

    def test_graph_unknown(self) -> None:
        """There is no graph of an event without samples."""
        line = b"ERR No samples available for event 'x'"
        self.assert_refused(line, latency, b"LATENCY", b"GRAPH", b"x")
        self.assertEqual([], self.call(latency, b"LATENCY", b"HISTORY", b"x"))

    def test_ages(self) -> None:
        """An age is short enough to fit under one column."""
        ages = [(0, b"0s"), (59, b"59s"), (60, b"1m"), (7199, b"1h"), (86400 * 3, b"3d")]
        for age_s, text in ages:
            self.assertEqual(text, age_text(age_s))

    def test_doctor(self) -> None:
        """The advice says first what to enable, then what was slow."""
        self.assertIn(b"latency-monitor-threshold", self._doctor())
        monitor = self.watch()
        self.assertIn(b"nothing to report", self._doctor())
        monitor.sample(b"fork", 1, 20)
        monitor.sample(b"aof-fstat", 2, 40)
        self.assertIn(b"fork: 1 samples, mean 20 ms, highest 20 ms", self._doctor())
        self.assertIn(b"The disk is slow", self._doctor())
        monitor.sample(b"fork", 3, 41)
        monitor.sample(b"fork", 4, 25)
        figures = b"fork: 3 samples, mean 28 ms, highest 41 ms, all time high 41 ms."
        self.assertIn(figures, self._doctor())

    def _doctor(self) -> bytes:
        text = self.call(latency, b"LATENCY", b"DOCTOR")
        assert isinstance(text, bytes)
        return text

    def test_syntax(self) -> None:
        """Unknown subcommands and wrong argument counts get the same error."""
        for words in ([b"FOO"], [b"LATEST", b"x"], [b"HISTORY"], [b"GRAPH"], [b"DOCTOR", b"x"]):
            self.assert_refused(b"ERR syntax error", latency, b"LATENCY", *words)
