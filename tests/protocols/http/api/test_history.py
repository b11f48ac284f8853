"""Figures over time."""

from __future__ import annotations

from disque_tx.protocols.http.api.history import STEP_S, WINDOW_S
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
