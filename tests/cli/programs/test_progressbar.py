"""How far the check of a log is."""

from __future__ import annotations

import contextlib
import io

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.cli.programs import check_aof


class Terminal(io.StringIO):
    """A text stream that claims to be a terminal."""

    def isatty(self) -> bool:
        """It claims to be a terminal."""
        return True


class ProgressBarTests(SynchronousTestCase):
    """The progress bar on the error output."""

    def draw(self, terminal: bool) -> str:
        """The output after half of a file."""
        device = Terminal() if terminal else io.StringIO()
        with contextlib.redirect_stderr(device):
            bar = check_aof.ProgressBar(200)
            bar.show(100)
            bar.clear()
        return device.getvalue()

    def test_on_a_terminal(self) -> None:
        """A user sees how much is done, and the bar is removed at the end."""
        shown = self.draw(terminal=True)
        self.assertEqual("\r[" + "#" * 20 + "-" * 20 + "]  50 %\r\x1b[K", shown)

    def test_without_a_terminal(self) -> None:
        """Without a terminal, for example in a log, there is no bar."""
        self.assertEqual("", self.draw(terminal=False))
