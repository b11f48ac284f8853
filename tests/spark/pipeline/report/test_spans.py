"""A report about a part of the time, compared with an earlier one."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from click.testing import CliRunner
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.spark.pipeline.cli.program import command
from disque_tx.spark.pipeline.report import ReportScope
from disque_tx.spark.pipeline.report.spans import BadSpan, span_ms
from tests.spark.pipeline.logs import Node, job_id
from tests.spark.pipeline.report.test_queries import ShownCase, run

_HOUR_MS = 3_600_000
_TILE = re.compile(r"<li><b>([^<]*)</b><span>([^<]*)</span>(?: <span[^>]*>([^<]*)</span>)?</li>")


class SpanTests(SynchronousTestCase):
    """Spans as people write them."""

    def test_units(self) -> None:
        """Each unit is what people take it for."""
        words = {"30s": 30_000, "500ms": 500, "15min": 900_000, "24h": 24 * _HOUR_MS}
        words |= {"7d": 168 * _HOUR_MS, "2w": 336 * _HOUR_MS}
        self.assertEqual(words, {word: span_ms(word) for word in words})

    def test_mistakes(self) -> None:
        """What is no span is refused with an example of one."""
        for word in ("", "7", "d", "-1d", "0h", "1.5h", "7 days", "9999d", "1" * 9 + "s", "٣d"):
            with self.assertRaises(BadSpan) as raised:
                span_ms(word)
            self.assertIn("such as 30s, 24h or 7d", str(raised.exception))

    def test_options(self) -> None:
        """The error names the option, and no page is written."""
        for option in ("--last", "--against"):
            page = Path(f"{self.mktemp()}.html")
            words = ["report", "out", "--html", str(page), option, "soon"]
            wrong = CliRunner().invoke(command, words)
            self.assertEqual(2, wrong.exit_code)
            self.assertIn(f"Invalid value for {option}: 'soon' is not a span", wrong.output)
            self.assertFalse(page.exists())


class PeriodTests(ShownCase):
    """Three hours: 1 job in the first, 2 in the second, 4 in the third, which ends at 3 h."""

    def page(self, **words: Any) -> str:
        """The report."""
        node = Node("a")
        for number, at_h in enumerate((0.5, 1.2, 1.8, 2.2, 2.4, 2.6, 2.8)):
            node.add(at_h * 3600, job_id(number), queue=f"q{int(at_h)}")
            if at_h < 2.5:
                node.work(at_h * 3600 + 1, job_id(number), queue=f"q{int(at_h)}")
        node.add(3 * 3600, job_id(7), queue="q2")
        return self.made(node, asked=ReportScope(**words))[0]

    def tiles(self, page: str) -> dict[str, tuple[str, str]]:
        """What → the number at the top, and what stands beside it."""
        return {what: (value, beside) for value, what, beside in _TILE.findall(page)}

    def test_last(self) -> None:
        """Only jobs and windows of the period count, and queues and findings are theirs; the
        backlog is the one that there was, from before the period, too."""
        page = self.page(last_ms=_HOUR_MS)
        self.assertEqual(("5", ""), self.tiles(page)["jobs"])
        self.assertIn("2026-11-20 21:00:00 UTC to 2026-11-20 22:00:00 UTC", page)
        self.assertEqual([("q2", 5)], [(row["queue"], row["jobs"]) for row in run(page, "queues")])
        self.assertEqual(5, sum(row["added"] for row in run(page, "rates")))
        self.assertEqual(2, sum(row["acked"] for row in run(page, "rates")))

    def test_backlog(self) -> None:
        """Jobs that were added before the period and have not ended are in the backlog of its first
        step."""
        node = Node("a")
        node.add(0, job_id(1))
        node.add(7200, job_id(2))
        _, figures = self.made(node, asked=ReportScope(last_ms=_HOUR_MS))
        self.assertEqual({"": [2], "mail": [2]}, figures.backlog)
        self.assertEqual([1], figures.rates["added"])

    def test_whole(self) -> None:
        """A period that is longer than the tables has the same figures as none."""
        whole, last = self.page(), self.page(last_ms=100 * _HOUR_MS)
        for name in ("summary", "outcomes", "queues", "rates", "backlog", "wait-ms", "redelivered"):
            self.assertEqual(run(whole, name), run(last, name), name)

    def test_against(self) -> None:
        """The same figures of the hour before stand beside those of the last one; alone, the option
        compares periods that follow each other."""
        page = self.page(against_ms=_HOUR_MS)
        tiles = self.tiles(page)
        self.assertEqual(("5", "2 before, +150 %"), tiles["jobs"])
        self.assertEqual(("40 %", "100 % before, -60 %"), tiles["acknowledged"])
        self.assertEqual(page, self.page(last_ms=_HOUR_MS, against_ms=_HOUR_MS))
        self.assertEqual(2, run(page, "earlier")[0]["jobs"])

    def test_nothing_earlier(self) -> None:
        """Where the tables do not go back so far, the page says so instead of showing zeros."""
        page = self.page(last_ms=_HOUR_MS, against_ms=50 * _HOUR_MS)
        self.assertIn("The tables contain no jobs of 2026-11-18 19:00:00 UTC", page)
        self.assertEqual(("5", ""), self.tiles(page)["jobs"])
        page = self.page(last_ms=2 * _HOUR_MS, against_ms=2 * _HOUR_MS)
        self.assertIn("only a part of it", page)

    def test_audit(self) -> None:
        """The audit is of all events, as a violation does not end with the period."""
        page = self.page(last_ms=_HOUR_MS)
        self.assertIn("All events are audited", page)
        self.assertEqual([], run(page, "audit"))

    def test_no_jobs(self) -> None:
        """Tables without jobs have no last hour, which is no error."""
        node = Node("a")
        node.log(0, "paused", None, paused="in")
        page, _ = self.made(node, asked=ReportScope(against_ms=_HOUR_MS))
        self.assertIn("No job was added in this period", page)
