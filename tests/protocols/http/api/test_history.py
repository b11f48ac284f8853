"""Figures over time, and what happened besides."""

from __future__ import annotations

from typing import Any

from disque_tx.core.statistics.rings import Record
from disque_tx.core.statistics.waits import Histogram
from tests.protocols.http.httpbench import HttpCase

_PATH = "/api/v1/history"
#: Long ago, so that what is done now is not too old for any chart.
_NOW_S = 1_700_000_000


class HistoryTests(HttpCase):
    """What the charts of the console show."""

    def setUp(self) -> None:
        super().setUp()
        self.reactor.advance(_NOW_S - self.reactor.seconds())
        self.history = self.root.server.node.state.history
        self.record = Record(b"q")
        self.history.records.put(self.record)

    def put(self, ago_s: int, added: int, queued: int = 0, *waits_ms: int) -> None:
        """A sample of a step that began so long ago, of the queue ``q`` and of all. ``waits_ms``:
        of jobs that were delivered."""
        waits = Histogram()
        for wait_ms in waits_ms or (0,):
            waits.add(wait_ms)
        for record in (self.record, self.history.node):
            levels = [queued, 0, 0, 0]
            record.put((_NOW_S - ago_s) // 10, [added, 1, 0, 0, *waits.counts()], levels)

    def samples(self, path: str = _PATH) -> dict[str, Any]:
        """The columns of an answer."""
        found: dict[str, Any] = self.http("GET", path).json["samples"]
        return found

    def test_nobody_looked(self) -> None:
        """Who opens the console because something is wrong sees what happened before."""
        self.put(1_000, added=50, queued=7)
        self.put(40, added=100, queued=3)
        samples = self.samples()
        self.assertEqual([(_NOW_S - 990) * 1000, (_NOW_S - 10) * 1000], [
            samples["at_ms"][0], samples["at_ms"][-1],
        ])  # fmt: skip
        self.assertEqual(99, len(samples["at_ms"]))
        self.assertEqual((5.0, 10.0), (samples["added"][0], samples["added"][-3]))
        self.assertEqual((7, 3), (samples["queued"][0], samples["queued"][-3]))
        for name, column in samples.items():
            if name != "at_ms":
                self.assertEqual({0}, {*column[1:-3]}, name)

    def test_one_queue(self) -> None:
        """The history of a queue is its own, by both of its addresses, and that of an unknown one
        is empty."""
        self.put(40, added=20)
        for path in (f"{_PATH}?queue=q", "/api/v1/queues/q/history"):
            self.assertEqual(2.0, self.samples(path)["added"][0])
        self.assertEqual([], self.samples(f"{_PATH}?queue=other")["at_ms"])
        self.problem(400, "ERR", self.http("GET", f"{_PATH}?queue="))

    def test_spans(self) -> None:
        """However long the span is, a chart gets no more samples than a screen shows, and jobs per
        second are means over what has passed."""
        self.put(40, added=240)
        hour_s = 3_600
        for span, span_s, step_s in (
            ("15m", hour_s // 4, 10), ("1h", hour_s, 10), ("24h", 24 * hour_s, 240),
            ("14d", 14 * 24 * hour_s, hour_s),
        ):  # fmt: skip
            answer = self.http("GET", f"{_PATH}?span={span}").json
            self.assertEqual((span_s, step_s), (answer["span_s"], answer["step_s"]))
            self.assertLessEqual(answer["span_s"] // step_s, 360)
        self.problem(400, "ERR", self.http("GET", f"{_PATH}?span=2y"))

    def test_begin(self) -> None:
        """A span begins as long ago as its name says, to the step, and its last step is over: the
        one before it is not shown, nor is one that is under way."""
        for span, steps in (("15m", 90), ("1h", 360)):
            self.put(20 + (steps - 1) * 10, added=10)
            answer = self.http("GET", f"{_PATH}?span={span}").json["samples"]
            self.assertEqual((steps, 1.0), (len(answer["at_ms"]), answer["added"][0]), span)
            self.assertEqual((_NOW_S - 10) * 1000, answer["at_ms"][-1])
            self.assertEqual((_NOW_S - steps * 10) * 1000, answer["at_ms"][0])

    def test_before(self) -> None:
        """What lies one step before the span, or in the step that is under way, is left out."""
        self.put(20 + 90 * 10, added=10)
        self.put(10, added=10)
        self.assertEqual([], self.http("GET", f"{_PATH}?span=15m").json["samples"]["at_ms"])

    def test_levels(self) -> None:
        """Of levels the greatest of a sample counts, and jobs per second are the mean of it."""
        for ago_s, added, queued in ((1_260, 24, 3), (1_190, 48, 9), (1_130, 0, 5)):
            self.put(ago_s, added, queued)
        answer = self.http("GET", f"{_PATH}?span=24h").json["samples"]
        self.assertEqual(9, max(answer["queued"]))
        self.assertAlmostEqual(72 / 240, sum(answer["added"]), 2)

    def test_waits(self) -> None:
        """Waits are those of the jobs that were delivered in the step."""
        self.put(40, 1, 0, 30_000)
        samples = self.samples()
        self.assertTrue(10_000 < samples["wait_p50_ms"][0] <= 30_000, samples["wait_p50_ms"])

    def test_longest_waits(self) -> None:
        """One job that waited for long among many is seen, and does not hide that the others did
        not."""
        self.put(40, 1, 0, 30_000, *[10] * 9)
        samples = self.samples()
        self.assertLess(samples["wait_p50_ms"][0], 100)
        self.assertGreater(samples["wait_p99_ms"][0], 10_000)

    def test_kept_for_a_moment(self) -> None:
        """Ten consoles ask the nodes little more than one does."""
        self.put(40, added=10)
        self.samples()
        self.put(30, added=10)
        self.assertEqual(1.0, self.samples()["added"][0])
        self.assertEqual(0, self.samples()["added"][1])
        self.reactor.advance(5)
        self.assertEqual(1.0, self.samples()["added"][1])

    def test_marks(self) -> None:
        """What may be the reason stands beside the figures: a deploy, a pause, a changed policy, a
        restart; but no pause of another queue, and nothing that was refused."""
        self.http("POST", "/api/v1/notes", {"text": "deployed 4711"})
        self.call(b"PAUSE", b"a queue", b"out")
        self.call(b"QPOLICY", b"SET", b"*", b"retry", b"60")
        self.http("POST", "/api/v1/policies/q", {"settings": {"retry": -1}})
        marks = self.http("GET", _PATH).json["marks"]
        self.assertEqual(["restart", "note", "pause", "policy"], [one["kind"] for one in marks])
        self.assertEqual("deployed 4711", marks[1]["what"])
        self.assertEqual('PAUSE "a queue" out', marks[2]["what"])
        of_queue = self.http("GET", f"{_PATH}?queue=q").json["marks"]
        self.assertEqual(["restart", "note", "policy"], [one["kind"] for one in of_queue])
        of_paused = self.http("GET", f"{_PATH}?queue=a+queue").json["marks"]
        self.assertEqual(4, len(of_paused))

    def test_last_marks(self) -> None:
        """Of many the last fifty are shown, the oldest of them first."""
        for number in range(60):
            self.http("POST", "/api/v1/notes", {"text": f"note {number}"})
            self.reactor.advance(1)
        marks = self.http("GET", _PATH).json["marks"]
        self.assertEqual([f"note {number}" for number in range(10, 60)], [m["what"] for m in marks])

    def test_cluster(self) -> None:
        """The sums of the cluster say which nodes are in them."""
        self.put(40, added=10)
        answer = self.http("GET", f"{_PATH}?scope=cluster").json
        self.assertEqual((1, []), (answer["nodes"], answer["nodes_missing"]))
        self.assertEqual(1.0, answer["samples"]["added"][0])


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
