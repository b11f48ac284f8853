"""The queries that a page shows, run by a reader."""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import Any

import duckdb
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.spark.pipeline.local.ingestion import ingest
from disque_tx.spark.pipeline.local.lifecycle import lifecycle
from disque_tx.spark.pipeline.report import ReportScope, report, sources
from disque_tx.spark.pipeline.report.figures import Figures, measure
from disque_tx.text.similar import similar
from tests.spark.pipeline import shop
from tests.spark.pipeline.logs import Node, job_id, write

_VIEWS = re.compile(r'<pre id="views">(.*?)</pre>', re.DOTALL)
_QUERY = re.compile(r'<h3 id="query-([\w-]+)">.*?<pre>(.*?)</pre>', re.DOTALL)
_LINK = re.compile(r'href="#(query-[\w-]+)"')


def _similar(note: str) -> str:
    return similar(note)


def run(page: str, name: str) -> list[dict[str, Any]]:
    """The rows of a query of a page in a new DuckDB, as if views and query were pasted there."""
    with duckdb.connect() as connection:
        connection.create_function("similar", _similar, ["VARCHAR"], "VARCHAR")
        (views,) = _VIEWS.findall(page)
        connection.execute(html.unescape(views))
        connection.execute(html.unescape(dict(_QUERY.findall(page))[name]))
        columns = [column[0] for column in connection.description or ()]
        return [dict(zip(columns, row, strict=True)) for row in connection.fetchall()]


class ShownCase(SynchronousTestCase):
    """A page, and the figures in it; without Spark, which the command does not need."""

    def setUp(self) -> None:
        self.folder = Path(self.mktemp()).resolve()

    def made(self, *nodes: Node, **words: Any) -> tuple[str, Figures]:
        """The page about these nodes, with an audit, and its figures. Tables are made once."""
        table, out = str(self.folder / "table"), str(self.folder / "out")
        if not Path(out).exists():
            for at, node in enumerate(nodes):
                write(self.folder / "events" / f"{at}.jsonl", node.events)
            ingest([str(self.folder / "events")], table)
            lifecycle(table, out)
        page = self.folder / "report.html"
        report(out, page, table, **words)
        top, asked = words.get("top", 20), words.get("asked", ReportScope())
        return page.read_text(), measure(out, table, top, asked)


class QueryTests(ShownCase):
    """Views and queries of a page."""

    def test_figures(self) -> None:
        """Whoever doubts a figure pastes its query, and gets that figure."""
        page, figures = self.made(*shop.nodes())
        self.assertEqual([dict(figures.summary)], run(page, "summary"))
        outcomes = {row["outcome"]: row["jobs"] for row in run(page, "outcomes")}
        self.assertEqual(figures.outcomes, outcomes)
        added = {row["step"]: row["added"] for row in run(page, "rates")}
        steps = range(figures.axis.steps)
        self.assertEqual(figures.rates["added"], [added.get(step, 0) for step in steps])
        waits = {(row["step"], row["band"]): row["jobs"] for row in run(page, "wait-ms")}
        self.assertEqual(figures.waits, waits)
        course = {row["step"]: row["run_p99_ms"] for row in run(page, "run-course")}
        expected = dict(enumerate(figures.course.runs["p99"]))
        self.assertEqual({step: ms for step, ms in expected.items() if ms is not None}, course)
        self.assertEqual(figures.totals, run(page, "queues"))
        slow = figures.slowest
        self.assertEqual(slow.ran, run(page, "ran-longest"))
        self.assertEqual(slow.waited, run(page, "waited-longest"))
        self.assertEqual(slow.queues, run(page, "slow-queues"))
        self.assertEqual(figures.worst, run(page, "worst"))
        for finding, (_, rows) in figures.found.items():
            self.assertEqual(rows, run(page, finding))
        flow = {(row["from_node"], row["to_node"]) for row in run(page, "flow")}
        self.assertEqual(set(figures.flow), flow)
        backlog = run(page, "backlog")
        self.assertEqual(set(figures.backlog), {row["queue"] for row in backlog})
        whole = sum(row["change"] for row in backlog if row["queue"] == "")
        self.assertEqual(figures.backlog[""][-1], whole)

    def test_audit(self) -> None:
        """The statements of the audit find what it found."""
        node = Node("a")
        node.add(0, job_id(1), retry_s=0)
        for at_s in (1, 2):
            node.log(at_s, "delivered", job_id(1), wait_ms=3)
        page, _ = self.made(node)
        self.assertEqual(
            [{"check_name": "retry0-twice", "verdict": "violated", "jobs": 1}], run(page, "audit")
        )

    def test_links(self) -> None:
        """Every link leads to a query of the page, and each part with figures has one."""
        page, _ = self.made(*shop.nodes())
        places = set(re.findall(r'id="(query-[\w-]+)"', page))
        self.assertEqual(set(), set(_LINK.findall(page)) - places)
        for section in re.findall(r'<section id="([\w-]+)".*?</section>', page, re.DOTALL):
            (part,) = re.findall(rf'<section id="{section}".*?</section>', page, re.DOTALL)
            if section != "queries" and ("<svg" in part or "<table" in part):
                self.assertRegex(part, _LINK)

    def test_no_rows(self) -> None:
        """Tables without rows have views, too."""
        node = Node("a")
        node.log(0, "paused", None, paused="in")
        page, _ = self.made(node)
        (row,) = run(page, "summary")
        self.assertEqual(0, row["jobs"])
        self.assertEqual([], run(page, "queues"))

    def test_hostile_path(self) -> None:
        """A folder with a quote in its name is a text in SQL, and text in the page."""
        self.folder = self.folder / "it's <b>"
        page, figures = self.made(*shop.nodes())
        self.assertEqual(figures.totals, run(page, "queues"))
        self.assertNotIn("<b>/", page)

    def test_many_files(self) -> None:
        """Of a table with many files some are listed, with the way to name all of them; what is
        shown then fails instead of giving figures of some of the rows."""
        self.patch(sources, "FILES_SHOWN", 0)
        page, _ = self.made(*shop.nodes())
        self.assertIn("more files than are listed", page)
        self.assertIn(f"delta_scan('{self.folder}/out/jobs')", page)
        with self.assertRaises(duckdb.Error):
            run(page, "outcomes")


class PathTests(ShownCase):
    """Where files are."""

    def test_files_are_those_of_the_version(self) -> None:
        """Files that left the tables are not listed, as their rows no longer count."""
        page, figures = self.made(*shop.nodes())
        out = str(self.folder / "out")
        lifecycle(str(self.folder / "table"), out, whole=True)
        again = self.folder / "again.html"
        report(out, again)
        names = [set(re.findall(r"batch-\w+", text)) for text in (page, again.read_text())]
        self.assertNotEqual(set(), names[0] - names[1])
        self.assertEqual(figures.totals, run(again.read_text(), "queues"))
