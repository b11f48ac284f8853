"""Inputs that the fuzzers found can be replayed."""

from __future__ import annotations

import sys
from io import StringIO
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from tests.fuzz import checks
from tests.fuzz.__main__ import NAMES, main


class ReplayTests(SynchronousTestCase):
    """``python -m tests.fuzz TARGET FILE``, which works without a fuzzer."""

    def setUp(self) -> None:
        self.patch(sys, "stdout", StringIO())
        self.file = Path(self.mktemp())

    def test_every_target(self) -> None:
        """The inputs that a fuzzer starts from pass the check of every target."""
        self.assertEqual(set(checks.TARGETS), set(NAMES))
        for name, (_, seeds) in checks.TARGETS.items():
            self.file.write_bytes(seeds()[0])
            main([name, str(self.file)])

    def test_failing(self) -> None:
        """A defect shows the same traceback as in the fuzzer."""

        def check(data: bytes) -> None:
            raise AssertionError(data)

        self.patch(checks, "TARGETS", {"job": (check, list)})
        self.file.write_bytes(b"found")
        self.assertEqual(
            (b"found",), self.assertRaises(AssertionError, main, ["job", str(self.file)]).args
        )

    def test_usage(self) -> None:
        """The error for an unknown target lists those that exist."""
        for words in ([], ["buss"]):
            self.assertIn("bus|job|nodesfile", str(self.assertRaises(SystemExit, main, words)))
