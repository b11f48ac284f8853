"""``disque --bigqueues``: how the longest queues of a node are found, and what is shown of them."""

from __future__ import annotations

import csv
import json
import time

from disque_tx.cli.modes.bigqueues import survey
from tests.cli.livenode import VerbCase, drawn
from tests.client.blocking.test_session import SessionTestCase
from tests.client.scripted import ScriptedNode, array, bulk


def integer(number: int) -> bytes:
    """An integer reply."""
    return b":%d\r\n" % number


_UNKNOWN = b"-ERR unknown command 'QLIST'\r\n"


def stat(name: str, length: int) -> bytes:
    """The reply to QSTAT."""
    fields = {"name": bulk(name), "len": integer(length), "import-from": array()}
    for field in ("age", "idle", "blocked", "import-rate", "jobs-in", "jobs-out"):
        fields[field] = integer(0)
    fields["pause"] = bulk("none")
    return array(*[part for field, value in fields.items() for part in (bulk(field), value)])


class SurveyTests(SessionTestCase):
    """One node."""

    def test_original(self) -> None:
        """The queues of a node that cannot sort them are scanned, and the longest are kept."""
        node = ScriptedNode(
            QLIST=_UNKNOWN,
            QSCAN=array(bulk("0"), array(bulk("a"), bulk("b"), bulk("c"))),
            QSTAT=[stat("a", 2), stat("b", 5), stat("c", 3)],
        )
        self.addCleanup(node.close)
        seen: list[int] = []
        found = survey(self.client(node), 2, 3, seen.append)
        self.assertEqual((3, [(5, "b"), (3, "c")]), (found.queues, found.longest))
        self.assertEqual([1, 1, 1], seen)


class CommandTests(VerbCase):
    """The program, on a node."""

    def setUp(self) -> None:
        super().setUp()
        for number in range(1, 6):
            self.add(f"q{number}", *"x" * number)

    def test_table(self) -> None:
        """The longest queues come first, as many as requested; the total counts all of them."""
        status, output, error = self.disque("--bigqueues", "-n", 2, "-i", 0)
        rows = [line.split("\t")[1:3] for line in output.splitlines()[1:]]
        self.assertEqual((0, [["q5", "5"], ["q4", "4"]]), (status, rows))
        self.assertEqual(f"{self.node.address}: 5 queues\n", error)

    def test_few(self) -> None:
        """When there are fewer queues than are asked for, by default 20, all of them are shown."""
        _, output, _ = self.disque("--bigqueues", "-i", 0)
        shown = [line.split("\t")[1] for line in output.splitlines()[1:]]
        self.assertEqual(["q5", "q4", "q3", "q2", "q1"], shown)
        for number in range(6, 25):
            self.add(f"q{number:02}", *"x" * number)
        _, output, _ = self.disque("--bigqueues", "-i", 0)
        shown = [line.split("\t")[1] for line in output.splitlines()[1:]]
        self.assertEqual([f"q{number:02}" for number in range(24, 5, -1)] + ["q5"], shown)

    def test_bar(self) -> None:
        """On a terminal a bar shows how many queues have been looked at, of all."""
        _, _, errors = self.disque("--bigqueues", "-i", 0, terminal=True)
        bars = [line.split() for line in drawn(errors) if line.startswith("queues")]
        self.assertEqual(["5/5"], [bars[-1][2]])

    def test_rates(self) -> None:
        """The rates are those of the time between two looks, in which the program rests."""
        rested: list[float] = []

        def rest(pause_s: float) -> None:
            rested.append(pause_s)
            self.add("q5", *"x" * 8)

        self.patch(time, "sleep", rest)
        _, output, error = self.disque("--json", "--bigqueues", "-n", 1, "-i", 4, "--all-nodes")
        row = json.loads(output)
        self.assertEqual(([4.0], 2.0, 0.0), (rested, row["in_per_s"], row["out_per_s"]))
        self.assertEqual((13, f"{self.node.address}: 5 queues\n"), (row["length"], error))

    def test_forms(self) -> None:
        """Programs get the same rows as JSON and CSV, each with its node."""
        expected = [(self.node.address, f"q{number}", number) for number in (5, 4, 3)]
        _, output, _ = self.disque("--json", "--bigqueues", "-n", 3, "-i", 0)
        rows = [json.loads(line) for line in output.splitlines()]
        self.assertEqual(expected, [(row["node"], row["queue"], row["length"]) for row in rows])
        _, output, _ = self.disque("--csv", "--bigqueues", "-n", 3, "-i", 0)
        lines = list(csv.DictReader(output.splitlines()))
        self.assertEqual(
            expected, [(row["node"], row["queue"], int(row["length"])) for row in lines]
        )
