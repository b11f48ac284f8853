"""Figures over time."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.protocols.http.api.history import _FIELDS, STEP_S, WINDOW_S, Running, quantile
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

    def test_cluster(self) -> None:
        """The same figures are those of the cluster on demand, with which nodes are in them."""
        self.http("GET", f"{_PATH}?scope=cluster")
        self.call(b"ADDJOB", b"q", b"x", b"0")
        self.reactor.advance(STEP_S)
        answer = self.http("GET", f"{_PATH}?scope=cluster").json
        self.assertEqual([0, 1], answer["samples"]["queued"])
        self.assertEqual((1, []), (answer["nodes"], answer["nodes_missing"]))


class RunningTests(SynchronousTestCase):
    """Sums over nodes that come and go."""

    def figures(self, added: int, oldest_s: int = 0) -> dict[str, int]:
        """What a node says."""
        return {**dict.fromkeys(_FIELDS, 0), "added": added, "queued": 5, "oldest_s": oldest_s}

    def test_nodes_come_and_go(self) -> None:
        """A node that is away for a while, joins, or is restarted, is no burst of jobs."""
        running = Running()
        seen = [
            running.sums({name: self.figures(added) for name, added in nodes.items()})["added"]
            for nodes in (
                {b"a": 10, b"b": 100},
                {b"a": 13},
                {b"a": 14, b"b": 105},
                {b"a": 14, b"b": 105, b"c": 1000},
                {b"a": 2, b"b": 105, b"c": 1001},
            )
        ]
        self.assertEqual([110, 113, 119, 119, 122], seen)

    def test_levels(self) -> None:
        """Of what there is now, the sum counts; of the longest wait the longest."""
        sums = Running().sums({b"a": self.figures(1, 7), b"b": self.figures(1, 3)})
        self.assertEqual((10, 7), (sums["queued"], sums["oldest_s"]))


class FiguresTests(HttpCase):
    """The figures of each node."""

    def test_rows(self) -> None:
        """A row says whose it is, what is there, and where the node's console is."""
        self.call(b"ADDJOB", b"q", b"x", b"0")
        answer = self.http("GET", "/api/v1/figures?scope=cluster").json
        (row,) = answer["rows"]
        self.assertEqual((1, 1, 0), (row["queued"], row["queues"], row["in_flight"]))
        self.assertEqual(self.call(b"HELLO")[1].decode(), row["node"])
        self.assertEqual((False, True, False), (row["log"], row["log_ok"], row["leaving"]))
        self.assertEqual((1, []), (answer["nodes"], answer["nodes_missing"]))


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
