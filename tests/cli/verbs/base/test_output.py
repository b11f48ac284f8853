"""Tables on a terminal."""

from __future__ import annotations

from io import StringIO

from rich.console import Console
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.cli.verbs.base.output import drawn

_HEADER = ("node", "id", "state", "version", "jobs", "queues", "memory", "clients", "links")
_ROW = ("127.0.0.1:7711", "54260fc4", "myself", "1.0-rc1", "102", "1", "37.90K", "1", "2/2")


class DrawnTests(SynchronousTestCase):
    """``drawn``."""

    def test_narrow(self) -> None:
        """A row about a node fits into 80 columns, so that its address can be copied."""
        output = StringIO()
        Console(file=output, width=80).print(drawn(_HEADER, [_ROW]))
        words = [line.split() for line in output.getvalue().splitlines()]
        self.assertEqual([list(_HEADER), list(_ROW)], words)
