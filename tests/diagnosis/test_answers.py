"""What nodes answer about their queues, put together."""

from __future__ import annotations

import json

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.diagnosis.answers import hour_of, merged_failures, usual_waits, with_versions
from disque_tx.diagnosis.facts import FailureFacts


def _first_word(name: str) -> str:
    return name.partition(" ")[0]


class FailureTests(SynchronousTestCase):
    """``merged_failures``."""

    def merged(self, *rows: list[object]) -> tuple[FailureFacts, ...]:
        """The failures in these rows."""
        return merged_failures(rows, _first_word)

    def test_one_node(self) -> None:
        """Each row is one queue, with who gave a job back last, as far as the node says that."""
        self.assertEqual(
            (
                FailureFacts("mail", 3, 1, 2.5, "no disk", "D-1", 7, "w1"),
                FailureFacts("sms", 2, 0, 4.0, "\udcff", "D-2", 1),
                FailureFacts("web", 1, 1, 4.0),
            ),
            self.merged(
                [b"newer", 9, 9, 9, b"", b""],
                [b"mail", 3, 1, 2_500, b"no disk", b"D-1", 7, b"w1 connection"],
                ["sms", 2, 0, 4_000, b"\xff", "D-2", 1, b""],
                [b"web", 1, 1, 4_000, b"", b"", 0],
            ),
        )

    def test_several_nodes(self) -> None:
        """Counts are added; the failures are as old as the oldest; the job is the one that failed
        most often, wherever it is; error and worker are those of the first node that knows one."""
        first = [b"mail", 3, 1, 2_000, b"", b"D-1", 2, b""]
        second = [b"mail", 4, 2, 1_000, b"no disk", b"D-2", 9, b"w2 x"]
        third = [b"mail", 5, 0, 3_000, b"late", b"D-3", 4, b"w3 x"]
        expected = FailureFacts("mail", 12, 3, 1.0, "no disk", "D-2", 9, "w2")
        self.assertEqual((expected,), self.merged(first, second, third))

    def test_order(self) -> None:
        """The queue with most failures comes first, and of several with as many the first by
        name."""
        rows = [[name, failed, 0, 0, "", "", 0] for name, failed in (("b", 2), ("c", 5), ("a", 2))]
        self.assertEqual(["c", "a", "b"], [one.name for one in self.merged(*rows)])


class VersionTests(SynchronousTestCase):
    """``with_versions``."""

    def test_versions(self) -> None:
        """A worker that says its version has it, and a long one only its beginning; what says no
        version is left out."""
        said = [
            {"worker": "w1", "version": "v" * 100 + "w" * 100},
            {"worker": "w2", "version": 2},
            {"worker": 3, "version": "3"},
            {"version": "4"},
            [],
        ]
        rows: list[list[object]] = [["x", json.dumps(one)] for one in said]
        rows += [[], [b"x", b"no json"], [b"x", b'{"worker": "w4", "version": "1"}']]
        names = ["w1", "w2", "w3", "", "w4"]
        failures = tuple(FailureFacts("q", 1, 0, 0.0, worker=name) for name in names)
        found = with_versions(failures, rows)
        self.assertEqual(names, [one.worker for one in found])
        self.assertEqual(["v" * 100, "", "", "", "1"], [one.version for one in found])


class HistoryTests(SynchronousTestCase):
    """Steps of the history, and waits."""

    def test_hour(self) -> None:
        """The hour ends with this quarter; none begins before the clock does."""
        self.assertEqual((0, 3), hour_of(3_599.9))
        self.assertEqual((0, 4), hour_of(3_600.0))
        self.assertEqual((1, 5), hour_of(4_500.0))

    def test_usual_waits(self) -> None:
        """Of each queue the longest usual wait counts, whichever node knows it."""
        answers = [[-1, 200, 0], [-1, 100, -1, 900], [1_500]]
        self.assertEqual([1.5, 0.2, 0.0, 0.9], usual_waits(4, [*answers, []]))
        self.assertEqual([1.5, 0.2, 0.0], usual_waits(3, answers))
        self.assertEqual([None], usual_waits(1, [[-1], []]))
