"""The notebook in ``examples/notebooks``, run as its readers run it, without Spark and Java."""

from __future__ import annotations

import json
import math
import re
import tempfile
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import Any, Final

import nbformat
from nbformat import NotebookNode
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.spark.pipeline.local.ingestion import ingest
from tests.spark.pipeline.local.notebooks import executed, outputs, table
from tests.spark.pipeline.logs import Node, job_id, segment

_NOTEBOOK: Final = Path(__file__).resolve().parents[4] / "examples/notebooks/events.ipynb"
#: Names of queues → the same in a chart.
_QUEUES: Final = {
    '<script>alert("queue")</script>': '<script>alert("queue")</script>',
    "$\\frac{$": "$\\frac{$",
    "_hidden": "_hidden",
    "'; DROP TABLE jobs; --": "'; DROP TABLE jobs; --",
    "two\nlines\x1b[31m": "two?lines?[31m",
    "größe " + "x" * 3000: "größe " + "x" * 33 + "…",
}
_GROWS: Final = "größe " + "x" * 3000
_NOTE: Final = "<b>why</b> ${not}"
_JOBS: Final = 600
_LOST: Final = job_id(_JOBS)
#: Prints what the charts show.
_PROBE: Final = """
import json

def lines(axis):
    return [[float(value) for value in line.get_ydata()] for line in axis.lines]

waits_shown = {axis.get_title(loc="left"): lines(axis) for axis in waits_chart.axes}
(axis,) = growth_chart.axes
legend = axis.get_legend()
labels = [text.get_text() for text in legend.get_texts()] if legend else []
print(json.dumps({"waits": waits_shown, "growth": labels, "backlogs": lines(axis)}))
"""


def _node() -> Node:
    """Three hours, in which jobs of each queue come back because of NACK or RETRY. One queue loses
    its workers after the first of its jobs, and one job is lost."""
    node = Node("a")
    queues = list(_QUEUES)
    for number in range(_JOBS):
        queue, at_s = queues[number % len(queues)], number * 17.0
        job, wait_ms = job_id(number), 1 + number * number % 997
        node.add(at_s, job, queue=queue)
        if queue == _GROWS and number > 240:
            continue
        node.log(at_s + 1, "delivered", job, queue=queue, wait_ms=wait_ms)
        again = {"queue": queue, "wait_ms": 2 * wait_ms}
        if number % 4 == 1:
            node.log(at_s + 2, "nacked", job, queue=queue, note=_NOTE)
            node.log(at_s + 2, "requeued", job, queue=queue, reason="nack")
            node.log(at_s + 3, "delivered", job, nacks=1, **again)
        elif number % 8 == 2:
            node.log(at_s + 61, "requeued", job, queue=queue, reason="retry")
            node.log(at_s + 62, "delivered", job, additional_deliveries=1, **again)
        node.log(at_s + 100 + number, "acked", job, queue=queue, run_ms=500)
    node.add(0, _LOST, queue=queues[0], ttl_s=60)
    return node


@cache
def _analysed() -> tuple[NotebookNode, dict[str, Any]]:
    """The notebook on a table of these events, and what its charts show."""
    folder = _folder()
    segment(folder / "logs", _node().events)
    ingest([str(folder / "logs")], str(folder / "table"))
    return _executed(folder, str(folder / "table"))


def _executed(folder: Path, events: str) -> tuple[NotebookNode, dict[str, Any]]:
    read = nbformat.read(_NOTEBOOK, as_version=nbformat.NO_CONVERT)
    notebook = executed(read, folder, _PROBE, DISQUE_EVENTS=events, TMPDIR=str(folder))
    return notebook, json.loads(outputs(notebook, "probe", "text/plain")[0])


def _folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="notebook-", dir=".")).resolve()


def _rank(values: list[float], share: float) -> float:
    """A percentile, as the value of one of them."""
    return sorted(values)[math.ceil(len(values) * share) - 1]


def _cut(text: str) -> str:
    """A text as a table shows it."""
    return text if len(text) <= 60 else f"{text[:60]}…"


class NumbersTests(SynchronousTestCase):
    """What is displayed, compared with the events in the table, of queues whose names would break
    HTML, SQL, formulas and legends."""

    def setUp(self) -> None:
        self.notebook, self.charts = _analysed()
        self.by_job: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for event in _node().events:
            self.by_job[event["subject"]].append(event)

    def jobs_of(self, queue: str, kind: str, times: int = 1) -> int:
        """How many jobs of a queue have so many events of a kind, or more."""
        return sum(
            events[0]["messaging.destination.name"] == queue
            and sum(event["type"] == f"disque.job.{kind}" for event in events) >= times
            for events in self.by_job.values()
        )

    def test_overview(self) -> None:
        """The first table accounts for all jobs of each queue."""
        expected = {
            _cut(queue): [
                str(self.jobs_of(queue, "added")),
                str(self.jobs_of(queue, "acked")),
                str(self.jobs_of(queue, "delivered", 2)),
            ]
            for queue in _QUEUES
        }
        rows = table(self.notebook, "overview")
        self.assertEqual(expected, {row[0]: [row[1], row[2], row[-1]] for row in rows})

    def test_waits(self) -> None:
        """The lines of the chart are the median and the 99th percentile of each hour, with the name
        of the queue above."""
        waits: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
        for event in _node().events:
            if event["type"] == "disque.job.delivered":
                queue, hour = event["messaging.destination.name"], event["time"][:13]
                waits[queue][hour].append(event["wait_ms"] / 1000)
        expected = {
            _QUEUES[queue]: [
                [_rank(hours[hour], share) for hour in sorted(hours)] for share in (0.5, 0.99)
            ]
            for queue, hours in waits.items()
        }
        self.assertEqual(expected, self.charts["waits"])
        self.assertEqual(1, len(outputs(self.notebook, "waits", "image/png")))

    def test_delivered_again(self) -> None:
        """Each reason of a worker, and each RETRY that was over, is counted for its queue."""
        expected = set()
        for queue in _QUEUES:
            nacked, retried = self.jobs_of(queue, "nacked"), 0
            for events in self.by_job.values():
                reasons = [event.get("reason") for event in events]
                is_here = events[0]["messaging.destination.name"] == queue
                retried += is_here and "retry" in reasons
            for why, jobs in ((f"returned: {_NOTE}", nacked), ("RETRY was over", retried)):
                if jobs:
                    expected.add((_cut(queue), why, str(jobs), str(jobs)))
        rows = table(self.notebook, "again")
        self.assertEqual(expected, set(map(tuple, rows)))
        self.assertEqual(len(expected), len(rows))

    def test_growth(self) -> None:
        """The queue without workers is the first in the legend, by the number of its jobs that were
        not done, and no name is missing there."""
        left = {queue: self.jobs_of(queue, "added") for queue in _QUEUES}
        left = {queue: jobs - self.jobs_of(queue, "acked") for queue, jobs in left.items()}
        expected = sorted(_QUEUES, key=lambda queue: (-left[queue], queue))
        self.assertEqual(_GROWS, expected[0])
        labels = [f"{left[queue]:+d} {_QUEUES[queue]}" for queue in expected]
        self.assertEqual(labels, self.charts["growth"])
        ends = [backlog[-1] for backlog in self.charts["backlogs"]]
        self.assertEqual([left[queue] for queue in expected], ends)
        self.assertEqual(1, len(outputs(self.notebook, "growth", "image/png")))

    def test_slowest(self) -> None:
        """The slowest jobs are those with the longest time until their acknowledgement."""
        done = [job for job, events in self.by_job.items() if "run_ms" in events[-1]]
        # Each job takes a second longer than the one before it.
        expected = [[job, f"{100 + int(job[11:35])}.0"] for job in sorted(done)[:-11:-1]]
        self.assertEqual(expected, [[row[0], row[2]] for row in table(self.notebook, "slowest")])

    def test_audit(self) -> None:
        """The lost job is named, and no other."""
        queue = next(iter(_QUEUES))
        self.assertEqual([["lost", "violated", _LOST, queue]], table(self.notebook, "audit"))
        said = outputs(self.notebook, "audit", "text/plain")[0]
        self.assertEqual(f"lost: violated: 1 of {_JOBS + 1} jobs\n", said)

    def test_readers(self) -> None:
        """All programs see all events."""
        count = str(len(_node().events))
        expected = [[name, count] for name in ("pyarrow", "Polars", "DuckDB")]
        self.assertEqual(expected, table(self.notebook, "readers"))

    def test_no_markup(self) -> None:
        """Names of queues and reasons of workers run no scripts in the browser of a reader."""
        for cell in self.notebook.cells:
            for html in outputs(self.notebook, cell.id, "text/html") if cell.get("outputs") else ():
                self.assertNotIn("<script>", html)
                self.assertNotIn("<b>", html)


class OtherTableTests(SynchronousTestCase):
    """Tables that are special."""

    def test_made_up(self) -> None:
        """Who has no table yet gets an answer to each question from a made-up one."""
        notebook, charts = _executed(_folder(), "")
        queues = {row[0] for row in table(notebook, "overview")}
        self.assertEqual({"mail", "orders", "thumbnails", "reports", "imports"}, queues)
        self.assertEqual(queues, set(charts["waits"]))
        self.assertRegex(charts["growth"][0], r"^\+[1-9]\d* reports$")
        reasons = {(row[0], row[1]) for row in table(notebook, "again")}
        self.assertIn(("orders", "returned: the bank does not answer"), reasons)
        self.assertIn(("thumbnails", "RETRY was over"), reasons)
        verdicts = [row[:2] for row in table(notebook, "audit")]
        self.assertEqual([["lost", "unknown"], ["lost", "violated"]], verdicts)

    def test_no_events(self) -> None:
        """A table without events gives empty answers, and no traceback."""
        folder = _folder()
        (folder / "logs").mkdir()
        ingest([str(folder / "logs")], str(folder / "table"))
        notebook, charts = _executed(folder, str(folder / "table"))
        for cell in ("overview", "again", "slowest", "audit"):
            self.assertEqual([], table(notebook, cell))
        self.assertEqual([], charts["growth"])
        self.assertEqual({"0"}, {row[1] for row in table(notebook, "readers")})


class CommittedTests(SynchronousTestCase):
    """The file in the repository."""

    def setUp(self) -> None:
        self.text = _NOTEBOOK.read_text()
        self.notebook = nbformat.reads(self.text, as_version=nbformat.NO_CONVERT)

    def test_no_outputs(self) -> None:
        """A change of the notebook is a small diff, without pictures and traces of a machine."""
        for cell in self.notebook.cells:
            self.assertEqual({}, cell.metadata)
            self.assertEqual([], cell.get("outputs", []))
            self.assertIsNone(cell.get("execution_count"))
        self.assertEqual({"kernelspec", "language_info"}, set(self.notebook.metadata))
        self.assertEqual({"name": "python"}, self.notebook.metadata.language_info)

    def test_as_saved(self) -> None:
        """Saving it in Jupyter changes no line."""
        nbformat.validate(self.notebook)
        self.assertEqual(f"{nbformat.writes(self.notebook)}\n", self.text)

    def test_texts(self) -> None:
        """Links lead to pages that exist, and the program for Spark is one that can be copied."""
        texts = [cell.source for cell in self.notebook.cells if cell.cell_type == "markdown"]
        links = re.findall(r"\]\(([^)#]*)", "\n".join(texts))
        self.assertTrue(links)
        for link in links:
            self.assertTrue((_NOTEBOOK.parent / link).exists(), link)
        programs = re.findall(r"```python\n(.*?)```", "\n".join(texts), re.DOTALL)
        self.assertEqual(1, len(programs))
        compile(programs[0], str(_NOTEBOOK), "exec")
