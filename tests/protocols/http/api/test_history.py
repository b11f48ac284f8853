"""Figures over time."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.protocols.http.api.history import STEP_S, WINDOW_S, quantile
from tests.protocols.http.httpbench import HttpCase

_PATH = "/api/v1/history"


class HistoryTests(HttpCase):
    """What the charts of the console show."""

    def test_grows(self) -> None:
        """Who looks twice sees what happened in between, and the first look counts, too."""
        first = self.http("GET", _PATH).json["samples"]
        self.assertEqual([[0], [0]], [first["added"], first["queued"]])
        self.call(b"ADDJOB", b"q", b"x", b"0")
        self.reactor.advance(STEP_S)
        samples = self.http("GET", _PATH).json["samples"]
        self.assertEqual([[0, 1], [0, 1]], [samples["added"], samples["queued"]])
        self.assertEqual(STEP_S * 1000, samples["at_ms"][1] - samples["at_ms"][0])

    def test_bounded(self) -> None:
        """However often it is asked, and by however many, it keeps a quarter of an hour in steps
        of some seconds."""
        for _ in range(2 * WINDOW_S // STEP_S):
            self.http("GET", f"{_PATH}?seconds=1")
            self.http("GET", f"{_PATH}?seconds=1")
            self.reactor.advance(STEP_S)
        samples = self.http("GET", _PATH).json["samples"]
        self.assertEqual(WINDOW_S // STEP_S + 1, len(samples["at_ms"]))
        self.assertEqual(WINDOW_S * 1000, samples["at_ms"][-1] - samples["at_ms"][0])
        short = self.http("GET", f"{_PATH}?seconds=60").json["samples"]
        self.assertEqual(60 // STEP_S + 1, len(short["at_ms"]))

    def test_waits(self) -> None:
        """The waits of a sample are those of the jobs delivered since the one before."""
        self.http("GET", _PATH)
        for _ in range(10):
            self.call(b"ADDJOB", b"q", b"x", b"0")
        self.call(b"GETJOB", b"COUNT", b"9", b"FROM", b"q")
        self.reactor.advance(STEP_S)
        self.http("GET", _PATH)
        self.reactor.advance(STEP_S)
        samples = self.http("GET", _PATH).json["samples"]
        # How long the jobs waited depends on how busy this machine is.
        before, median_s, after = samples["wait_p50_s"]
        self.assertEqual([0, 0], [before, after])
        self.assertGreater(median_s, 0)
        before, longest_s, after = samples["wait_p99_s"]
        self.assertEqual([0, 0], [before, after])
        self.assertGreater(longest_s, median_s)


class QuantileTests(SynchronousTestCase):
    """Shares of what a histogram counted."""

    def test_values(self) -> None:
        """Within a bucket, durations are taken to be spread evenly; nothing is above the last
        bound."""
        for share, counts, expected in (
            (0.5, (0, 0, 0), 0.0), (0.5, (4, 0, 0), 0.5), (1.0, (4, 0, 0), 1.0),
            (0.5, (1, 1, 0), 1.0), (0.75, (1, 1, 0), 1.5), (0.99, (1, 0, 9), 2.0),
        ):  # fmt: skip
            self.assertEqual(expected, quantile((1.0, 2.0), counts, share), (share, counts))
