"""Listings that come in pages: what is asked for."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.client.requests.scans import Scan, job_scan, queue_scan


class WordTests(SynchronousTestCase):
    """The words of each page's request."""

    def words(self, scan: Scan[Any], cursor: int = 0) -> str:
        """Those at this cursor."""
        request = scan.page(cursor)
        self.assertTrue(request.repeatable)
        shown = [word if isinstance(word, bytes) else str(word).encode() for word in request.words]
        return b" ".join(shown).decode("utf-8", "backslashreplace")

    def test_queues(self) -> None:
        """Each condition on queues is asked for once, also those of 0; without any, a hundred names
        at a time."""
        self.assertEqual("QSCAN 0 COUNT 100", self.words(queue_scan()))
        self.assertEqual("QSCAN 17 COUNT 1", self.words(queue_scan(1), 17))
        conditions = {"minlen": 0, "maxlen": 5, "importrate": 2}
        self.assertEqual(
            "QSCAN 0 COUNT 100 MINLEN 0 MAXLEN 5 IMPORTRATE 2",
            self.words(queue_scan(**conditions)),
        )
        for name, value in conditions.items():
            found = self.words(queue_scan(**{name: value}))
            self.assertEqual(f"QSCAN 0 COUNT 100 {name.upper()} {value}", found)

    def test_jobs(self) -> None:
        """So is each condition on jobs; queues may have any name."""
        self.assertEqual("JSCAN 0 REPLY all COUNT 100", self.words(job_scan()))
        self.assertEqual(
            "JSCAN 9 REPLY all COUNT 7 QUEUE \\xff STATE active STATE queued REASON no*",
            self.words(job_scan(b"\xff", ("active", "queued"), 7, "no*"), 9),
        )
