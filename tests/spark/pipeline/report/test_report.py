"""The page about queues."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import attrs
from click.testing import CliRunner
from markupsafe import escape
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.spark.errors import BadTable, OutputExists
from disque_tx.spark.pipeline.cli.program import command
from disque_tx.spark.pipeline.lifecycle.results import lifecycle
from disque_tx.spark.pipeline.lifecycle.verdicts import Audit, Suspect
from disque_tx.spark.pipeline.local.lifecycle import lifecycle as by_duckdb
from disque_tx.spark.pipeline.report import page as page_module
from disque_tx.spark.pipeline.report.axis import Axis
from disque_tx.spark.pipeline.report.figures import COUNTED, FINDINGS, Checked, Figures, ReportScope
from disque_tx.spark.pipeline.report.latencies import Course
from disque_tx.spark.pipeline.report.page import (
    HEADINGS,
    TITLE,
    CannotWrite,
    FlowMatrix,
    rendered,
    report,
)
from disque_tx.spark.pipeline.report.slo import Burn, Slo
from disque_tx.spark.pipeline.report.slowest import Slowest
from tests.spark.pipeline import shop
from tests.spark.pipeline.cases import PipelineCase

GOLDEN = Path(__file__).with_name("golden") / "report.html"
#: Everything that makes a browser request something.
_LOADS = re.compile(r"""https?:|\b(?:src|srcset|poster|action)=|@import|url\(|<script|<iframe""")
_HOW_TO = Path(__file__).resolve().parents[4] / "docs" / "how-to" / "report-on-queues.md"
_EXAMPLE = re.compile(r"```python\n(.*?)```", re.DOTALL)
_NAMES = ("week", "history", "report.html")
_FILES = re.compile(r"read_parquet\(\[.*?\n\]", re.DOTALL)
_RANKS = ("p50", "p95", "p99", "p999")


def nothing() -> Figures:
    """The figures of tables without rows."""
    counts = (
        "jobs",
        "nodes",
        "deliveries",
        "nacks",
        "redelivered_jobs",
        "added",
        "queues",
        "acked",
    )
    summary = {**dict.fromkeys(counts, 0), "bytes": None, "begin_us": None, "end_us": None}
    return Figures(
        summary=summary,
        outcomes={},
        axis=Axis(0, 60, 1),
        rates={name: [0] for name in COUNTED},
        backlog={"": [0]},
        waits={},
        runs={},
        course=Course(Axis(0, 60, 1), {"p50": [None]}, {"p50": [None]}),
        totals=[],
        worst=[],
        flow={},
        found={finding: (0, []) for finding in FINDINGS},
        checked=None,
    )


def total(queue: str) -> dict[str, Any]:
    """A row of the table ``totals``."""
    times = {f"{k}_{r}_ms": 20 for k in ("wait", "run", "total") for r in _RANKS}
    counts = dict.fromkeys(("nacks", "retries", "expired", "lost", "pending"), 1)
    fields: dict[str, Any] = {"queue": queue, "jobs": 3, "bytes": 12, "redelivered_jobs": 2}
    return {**fields, "retry_s_min": 60, **counts, **times}


def named(name: str, advice: str = "Look.") -> Figures:
    """Figures with this name in every place."""
    places = ("queue", "job_id", "node", "peer")
    finding = {**dict.fromkeys(places, name), "advice": advice}
    slow = {"job_id": name, "queue": name, "at_us": 0, "took_ms": 7, "deliveries": 1}
    owned = {**total(name), "tenant": name, "acked": 1, "redelivered": 1}
    suspect = Suspect("lost", "violated", name, name)
    return attrs.evolve(
        nothing(),
        summary={**nothing().summary, "jobs": 3, "queues": 1},
        outcomes={"acked": 3},
        rates={kind: [3] for kind in COUNTED},
        backlog={"": [1], name: [1]},
        waits={(0, 4): 3},
        course=Course(Axis(0, 60, 1), {"p50": [20]}, {"p50": [None]}),
        totals=[total(name)],
        worst=[total(name)],
        flow={(name, "b" * 40): (2, 1)},
        found={kind: (1, [finding]) for kind in FINDINGS},
        burns=[Burn(Slo(name, "99", 1000), "slo-1", 3, 1, 0)],
        tenants=[owned],
        errors=[{"error": advice, "returns": 3, "jobs": 2, "dead": 1, "queue": name, "last_us": 0}],
        slowest=Slowest([slow], [slow], [total(name)]),
        checked=Checked(Audit(3, {("lost", "violated"): 1}, [suspect]), {name: 7}),
    )


class PageTests(SynchronousTestCase):
    """The content of the page."""

    def test_nothing(self) -> None:
        """Every part without data says so."""
        page = rendered(nothing())
        for words in ("There are no jobs in this table", "Nothing happened in any queue"):
            self.assertIn(words, page)
        for words in ("No job went from one node to another", "with <code>--events</code>"):
            self.assertIn(words, page)
        self.assertNotIn("<svg", page)

    def test_not_replaced(self) -> None:
        """A page that cannot take its name leaves nothing beside it, and the reason is said."""
        folder = Path(self.mktemp())
        folder.mkdir()
        self.patch(page_module, "measure", lambda *_: nothing())
        self.patch(os, "replace", self.refuse)
        with self.assertRaises(CannotWrite) as raised:
            report("out", folder / "page.html")
        self.assertIn("Permission denied. Choose another file.", str(raised.exception))
        self.assertEqual([], list(folder.iterdir()))

    def refuse(self, *_: object) -> None:
        """A name that cannot be given."""
        raise PermissionError(13, "Permission denied")

    def test_hostile_names(self) -> None:
        """Names are shown as text everywhere, also in plots, because anybody can name a queue."""
        for name in ("<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "a&b"):
            page = rendered(named(name, advice=name))
            self.assertNotIn("<script", page)
            self.assertNotIn("<img", page)
            self.assertIn(escape(name), page)

    def test_invisible_characters(self) -> None:
        """Invisible characters and names of any length do not reach the page."""
        hidden = "a\0\x1b[31m\u202ereversed"
        page = rendered(named(hidden, advice=hidden))
        for character in ("\0", "\x1b", "\u202e"):
            self.assertNotIn(character, page)
        self.assertNotIn("y" * 61, rendered(named("y" * 5000)))

    def test_no_requests(self) -> None:
        """The page can be read without a network, and makes no request."""
        for page in (rendered(nothing()), rendered(named("mail"))):
            self.assertEqual([], _LOADS.findall(page))

    def test_plots_have_titles(self) -> None:
        """A reader who cannot see a plot finds its title, and its numbers in a table."""
        page = rendered(named("mail"))
        plots = re.findall(r"<svg[^>]*>\s*<title id=[^>]*>[^<]+</title>", page)
        self.assertEqual(page.count("<svg"), len(plots))
        self.assertEqual(5, len(plots))
        self.assertGreaterEqual(page.count("<caption>"), len(plots))

    def test_verdict(self) -> None:
        """A violation is shown at the top of the audit, with the jobs."""
        self.assertIn("Something happened that should not have", rendered(named("mail")))
        fine = attrs.evolve(named("mail"), checked=Checked(Audit(3, {}, []), {}))
        self.assertIn("Nothing is wrong with 3 jobs", rendered(fine))
        self.assertIn("No number is missing", rendered(fine))

    def test_flow_is_bounded(self) -> None:
        """With many nodes, the busiest are shown, and the number of the others."""
        pairs = {(f"{node:040x}", "f" * 40): (node, node) for node in range(1, 31)}
        flow = FlowMatrix.of(pairs)
        self.assertEqual((12, 19), (len(flow.nodes), flow.left_out))
        self.assertEqual((30, 30, 5), flow.cell(f"{30:040x}", "f" * 40))
        self.assertEqual((0, 0, 0), flow.cell("f" * 40, f"{30:040x}"))


def comparable(page: str, folder: Path) -> str:
    """A page without the names of files, which are random."""
    return _FILES.sub("read_parquet([FILES]", page).replace(str(folder), "/data")


class ReportTests(PipelineCase):
    """From tables to a page."""

    def results(self, table: str, **words: Any) -> str:
        """What ``lifecycle`` makes of a table, by the engine of this test."""
        out = str(self.folder / "out")
        lifecycle(self.spark, table, out, **words)
        return out

    def test_golden(self) -> None:
        """The same events give the same page, byte for byte, but for the names of files."""
        table = self.ingested(*shop.nodes())
        out = self.results(table)
        html = self.folder / "report.html"
        html.write_text(f"<title>{TITLE}</title> of yesterday")
        asked = ReportScope(
            slos=(Slo.of("*:99%:1s"), Slo.of("orders:90%:30s")),
            tenants=(("shop", "orders"), ("shop", "thumbnails"), ("office", "mail")),
        )
        report(out, html, table, asked=asked)
        page = html.read_text(encoding="utf-8")
        for heading in HEADINGS.values():
            self.assertIn(f">{heading}</h2>", page)
        html.write_text(comparable(page, self.folder), encoding="utf-8")
        self.assertTrue(
            html.read_text(encoding="utf-8") == GOLDEN.read_text(encoding="utf-8"),
            f"{html} differs from {GOLDEN}; if it should, put it there.",
        )
        self.assertEqual([html], list(self.folder.glob("*.html")))
        self.assertEqual([], list(self.folder.glob(".*")))
        with self.assertRaises(CannotWrite) as raised:
            report(out, self.folder / "no" / "such" / "report.html")
        self.assertIn("No such file or directory", str(raised.exception))

    def test_foreign_file(self) -> None:
        """A wrong name costs nobody a file: only a report is replaced."""
        page = self.folder / "index.html"
        page.write_text("<title>My shop</title>")
        with self.assertRaises(OutputExists) as raised:
            report(str(self.folder / "out"), page)
        self.assertIn("is not a report. Choose another file", str(raised.exception))
        self.assertEqual("<title>My shop</title>", page.read_text())

    def test_no_lifecycle(self) -> None:
        """A folder with other content is an error, with the command that makes the right one."""
        with self.assertRaises(BadTable) as raised:
            report(str(self.folder), self.folder / "report.html")
        self.assertIn("has no jobs, queues", str(raised.exception))
        self.assertFalse((self.folder / "report.html").exists())
        with self.assertRaises(BadTable):
            report(str(self.folder / "typo" / "out"), self.folder / "report.html")
        self.assertEqual([], list(self.folder.iterdir()))

    def test_how_to(self) -> None:
        """The program in the guide writes the page, and the command writes the same one."""
        self.write(*shop.nodes())
        (program,) = _EXAMPLE.findall(_HOW_TO.read_text())
        for name in ("events", "history", "week", "week.html"):
            program = program.replace(f'"{name}"', f'"{self.folder / name}"')
        exec(program, {})
        words = ["report", "week", "--events", "history", "--html", "report.html"]
        paths = [str(self.folder / word) if word in _NAMES else word for word in words]
        result = CliRunner().invoke(command, ["--no-progress", *paths])
        self.assertEqual((0, f"{self.folder}/report.html\n"), (result.exit_code, result.output))
        pages = [(self.folder / name).read_text() for name in ("week.html", "report.html")]
        self.assertTrue(pages[0] == pages[1])


class LocalReportTests(ReportTests):
    """The same from tables that DuckDB made."""

    def results(self, table: str, **words: Any) -> str:
        """What ``lifecycle`` by DuckDB makes of a table."""
        out = str(self.folder / "out")
        by_duckdb(table, out, **words)
        return out
