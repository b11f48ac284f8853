"""Retries and dead letters by error class."""

from __future__ import annotations

import html
import re
from typing import Any

from markupsafe import escape

from disque_tx.spark.pipeline.report.returns import FUNCTION, UNANSWERED, UNKNOWN
from tests.spark.pipeline.logs import Node, job_id
from tests.spark.pipeline.report.test_queries import ShownCase, run

_HOSTILE = "<script>'; DROP TABLE jobs --"


def fail(node: Node, number: int, at_s: float, note: str | None, queue: str = "mail") -> None:
    """A worker gives a job back."""
    more = {} if note is None else {"note": note}
    node.log(at_s, "nacked", job_id(number), queue=queue, run_ms=5, **more)
    node.log(at_s, "requeued", job_id(number), queue=queue, reason="nack")


class ReturnTests(ShownCase):
    """What the page says about errors."""

    def rows(self, node: Node) -> list[tuple[Any, ...]]:
        """Error, returns, jobs, dead letters, queue; those of the query that the page shows are the
        same."""
        self.page, figures = self.made(node)
        assert figures.errors is not None
        self.assertEqual(list(map(dict, figures.errors)), run(self.page, "errors"))
        names = ("error", "returns", "jobs", "dead", "queue")
        return [tuple(row[name] for name in names) for row in figures.errors]

    def test_classes(self) -> None:
        """Reasons that differ by numbers and names are one class, whose jobs are counted once, with
        the queue that has most of its returns."""
        node = Node("a")
        for number in range(4):
            node.add(number, job_id(number), queue="sms" if number == 3 else "mail")
        fail(node, 0, 10, "ValueError: no user 4711")
        fail(node, 0, 20, "ValueError: no user 12")
        fail(node, 1, 30, "ValueError: no user bob@example.com")
        fail(node, 3, 40, "ValueError: no user 13", "sms")
        fail(node, 2, 50, _HOSTILE)
        fail(node, 2, 60, None)
        self.assertEqual(
            [
                ("ValueError: no user …", 4, 3, 0, "mail"),
                (_HOSTILE, 1, 1, 0, "mail"),
                (UNKNOWN, 1, 1, 0, "mail"),
            ],
            self.rows(node),
        )
        self.assertIn(str(escape(_HOSTILE)), self.page)
        self.assertNotIn("<script", self.page)
        self.assertIn("2026-11-20 19:00:40 UTC", self.page)

    def test_dead(self) -> None:
        """A dead letter counts in each class that its job was returned in, whether or not its queue
        has one for dead letters; the end itself is no return."""
        node = Node("a")
        for number in range(3):
            node.add(number, job_id(number))
        fail(node, 0, 10, "TimeoutError")
        fail(node, 0, 20, "KeyError: 5")
        node.log(20, "dead", job_id(0), note="KeyError: 5")
        fail(node, 1, 30, "TimeoutError")
        node.log(31, "dropped", job_id(1), note="delivered 2 times")
        fail(node, 2, 40, "TimeoutError")
        self.assertEqual(
            [("TimeoutError", 3, 3, 2, "mail"), ("KeyError: …", 1, 1, 1, "mail")], self.rows(node)
        )

    def test_retry(self) -> None:
        """Jobs that came back since nobody acknowledged them have a class of their own; one that
        died without any other trace has that of its end."""
        node = Node("a")
        for number in range(3):
            node.add(number, job_id(number))
        node.log(60, "requeued", job_id(0), reason="retry")
        node.log(60, "delayed", job_id(1), reason="retry", backoff_ms=1000)
        node.log(61, "requeued", job_id(1), reason="backoff")
        node.log(70, "dead", job_id(2), note="delivered 1 time")
        self.assertEqual(
            [(UNANSWERED, 2, 2, 0, "mail"), ("delivered … time", 0, 1, 1, "mail")],
            self.rows(node),
        )

    def test_nothing(self) -> None:
        """A log in which all went well says so."""
        node = Node("a")
        node.add(0, job_id(1))
        node.work(1, job_id(1))
        self.assertEqual([], self.rows(node))
        self.assertIn("No job was given back", self.page)

    def test_function(self) -> None:
        """The program beside the query makes the function in it, as a reader would run it."""
        node = Node("a")
        node.add(0, job_id(1))
        fail(node, 1, 1, "KeyError: 5")
        self.rows(node)
        self.assertIn(f"<pre>{escape(FUNCTION)}</pre>", self.page)
        (views,) = re.findall(r'<pre id="views">(.*?)</pre>', self.page, re.DOTALL)
        (query,) = re.findall(r'id="query-errors".*?<pre>(.*?)</pre>', self.page, re.DOTALL)
        found: list[str] = []
        texts = {"VIEWS": html.unescape(views), "QUERY": html.unescape(query)}
        exec(FUNCTION, {**texts, "print": lambda rows: found.append(str(rows))})
        self.assertIn("KeyError: …", found[0])
