"""Errors of disks and object stores, as the person who ran a command sees them."""

from __future__ import annotations

import os

import click
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.errors import DisqueError
from disque_tx.spark.pipeline.failures import in_words

_SECRET = "hidden-7f3a"


class FailureTests(SynchronousTestCase):
    """One line, with what to do."""

    def test_store(self) -> None:
        """The causes that a library draws below each other become a line, and keys that a server
        repeats are not shown: such lines are kept in logs of jobs."""
        self.patch(os, "environ", {**os.environ, "AWS_SECRET_ACCESS_KEY": _SECRET})
        drawn = f"Generic S3 error\n  \x1b[31m↳\x1b[0m 403 Forbidden\n  <Key>{_SECRET}</Key>"
        shown = str(in_words(OSError(drawn)))
        self.assertIn("written: Generic S3 error 403 Forbidden <Key>…</Key>. Check the path", shown)
        self.assertNotIn(_SECRET, shown)
        self.assertLess(len(str(in_words(OSError("x" * 10_000)))), 1000)

    def test_others(self) -> None:
        """Errors of this package say all there is to say; a reader of the output that has gone is
        none, and ends the command as usual."""
        self.assertEqual("Say why.", str(in_words(DisqueError("Say why."))))
        self.assertIsInstance(in_words(DisqueError("Say why.")), click.ClickException)
        gone = BrokenPipeError()
        self.assertIs(gone, in_words(gone))
