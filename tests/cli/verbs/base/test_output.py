"""Tables, documents and progress bars, on a terminal and elsewhere."""

from __future__ import annotations

import io
import math
import sys
from collections.abc import Callable
from io import StringIO

from rich.console import Console
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.cli.verbs.base import output
from disque_tx.cli.verbs.base.output import drawn
from tests.cli.livenode import drawn as drawn_lines
from tests.cli.livenode import many_columns
from tests.cli.programs.test_progressbar import Terminal

_HEADER = ("node", "id", "state", "version", "jobs", "queues", "memory", "clients", "links")
_ROW = ("127.0.0.1:7711", "54260fc4", "myself", "1.0-rc1", "102", "1", "37.90K", "1", "2/2")


class DrawnTests(SynchronousTestCase):
    """``drawn``."""

    def test_narrow(self) -> None:
        """A row about a node fits into 80 columns, so that its address can be copied."""
        screen = StringIO()
        Console(file=screen, width=80).print(drawn(_HEADER, [_ROW]))
        words = [line.split() for line in screen.getvalue().splitlines()]
        self.assertEqual([list(_HEADER), list(_ROW)], words)


class TextTests(SynchronousTestCase):
    """Output for programs."""

    def setUp(self) -> None:
        self.out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
        self.patch(sys, "stdout", self.out)

    def printed(self) -> bytes:
        """What was printed."""
        self.out.flush()
        return self.out.buffer.getvalue()

    def test_csv(self) -> None:
        """Rows are separated as everybody reads them; absent values are empty cells, and names of
        any bytes keep these."""
        output.csv(("a", "b"), [(1, None), ("x,y", 'q"'), ("\udcff", 0)])
        output.csv(("a", "b"), [(2.5, "")], header=False)
        self.assertEqual(b'a,b\n1,\n"x,y","q"""\n\xff,0\n2.5,\n', self.printed())

    def test_document(self) -> None:
        """Numbers that JSON does not have are null, however deep they are; others stay."""
        output.document({"a": [math.inf, 1.5, {"b": (-math.inf, math.nan, 0.0)}], "c": "inf"})
        expected = b'{"a": [null, 1.5, {"b": [null, null, 0.0]}], "c": "inf"}\n'
        self.assertEqual(expected, self.printed())

    def test_tabs(self) -> None:
        """Where there is no terminal, a table has a line per row, and tabs."""
        output.show(("a", "b"), [("1", "2 3"), ("", "x")])
        self.assertEqual(b"a\tb\n1\t2 3\n\tx\n", self.printed())


class BarTests(SynchronousTestCase):
    """Progress bars, which are for terminals."""

    def lines(self, terminal: bool, work: Callable[[], None]) -> list[str]:
        """What work draws on the error output."""
        device = Terminal() if terminal else StringIO()
        self.patch(sys, "stderr", device)
        with many_columns():
            work()
        return drawn_lines(device.getvalue())

    def test_steps(self) -> None:
        """The bar shows all steps so far of how many there are, if that is known."""
        for total, shown in ((7, "5/7"), (None, "5/?")):

            def work(total: int | None = total) -> None:
                with output.progress("jobs", total) as advance:
                    advance(2)
                    advance(3)

            last = self.lines(True, work)[-1].split()
            self.assertEqual(("jobs", shown), (last[0], last[2]))
            self.assertEqual([], self.lines(False, work))

    def test_not_shown(self) -> None:
        """Who wants no bar gets none on a terminal either."""

        def work() -> None:
            with output.progress("jobs", 7, shown=False) as advance:
                advance(2)

        self.assertEqual([], self.lines(True, work))

    def test_changing_total(self) -> None:
        """A bar whose total changes shows what is done of what is known so far."""

        def work() -> None:
            with output.Bar() as bar:
                bar(1, 9)
                bar(4, 2)

        last = self.lines(True, work)[-1].split()
        self.assertEqual(("moving", "4/6"), (last[0], last[2]))
        self.assertEqual([], self.lines(False, work))
