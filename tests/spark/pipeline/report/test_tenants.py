"""Figures by tenant."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner
from markupsafe import escape
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.spark.pipeline.cli.program import command
from disque_tx.spark.pipeline.report import ReportScope
from disque_tx.spark.pipeline.report.tenants import BadTenant, tenant
from tests.spark.pipeline.logs import Node, job_id
from tests.spark.pipeline.report.test_queries import ShownCase, run

_HOSTILE = "a' OR true --<b>"


class WordsTests(SynchronousTestCase):
    """Tenants as people name them."""

    def test_words(self) -> None:
        """A pattern may have the sign that stands before it."""
        self.assertEqual(("acme", "a=b*"), tenant("acme=a=b*"))

    def test_mistakes(self) -> None:
        """What names no tenant is refused, and the error names the option."""
        for word in ("acme", "=acme-*", "acme="):
            with self.assertRaises(BadTenant):
                tenant(word)
            words = ["report", "out", "--html", str(Path(self.mktemp())), "--tenant", word]
            wrong = CliRunner().invoke(command, words)
            self.assertEqual(2, wrong.exit_code)
            self.assertIn(f"Invalid value for --tenant: {word!r} does not name", wrong.output)


class TenantTests(ShownCase):
    """What each tenant has."""

    def test_tenants(self) -> None:
        """Each job counts for one tenant, the first whose pattern its queue matches, or for none;
        names are text, in the page and in SQL."""
        node = Node("a")
        queues = ("acme-mail", "acme-sms", "bolt-mail", "rest", "rest", "it's")
        for number, queue in enumerate(queues):
            node.add(number, job_id(number), queue=queue)
            for attempt in range(2 if queue == "acme-sms" else 1):
                wait_ms = 10 * (number + 1)
                node.log(
                    number + 1 + attempt, "delivered", job_id(number), queue=queue, wait_ms=wait_ms
                )
            if queue == "rest":
                node.log(number + 9, "expired", job_id(number), queue=queue)
            else:
                node.log(number + 9, "acked", job_id(number), queue=queue, run_ms=7)
        pairs = (("acme", "acme-*"), (_HOSTILE, "*-mail"), ("acme", "it's"), ("nobody", "x"))
        page, figures = self.made(node, asked=ReportScope(tenants=pairs))
        counts = ("tenant", "jobs", "acked", "expired", "redelivered", "wait_p50_ms", "run_p99_ms")
        self.assertEqual(
            [
                ("acme", 3, 3, 0, 1, 40, 7),
                (_HOSTILE, 1, 1, 0, 0, 30, 7),
                ("nobody", 0, 0, 0, 0, None, None),
                (None, 2, 0, 2, 0, 40, None),
            ],
            [tuple(row[name] for name in counts) for row in figures.tenants],
        )
        self.assertIn(f">{escape(_HOSTILE)}</th>", page)
        self.assertIn("queues of none", page)
        shown = run(page, "tenants")
        expected = [row for row in figures.tenants if row["jobs"]]
        self.assertEqual(sorted(map(dict, expected), key=repr), sorted(map(dict, shown), key=repr))
