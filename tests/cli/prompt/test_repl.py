"""The prompt, with scripted keys and without a terminal."""

from __future__ import annotations

import io
import os
import stat

from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.history import InMemoryHistory
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.cli.formatting import Style
from disque_tx.cli.prompt.repl import CommandCompleter, LineHistory, holds_password, run
from disque_tx.cli.prompt.session import CommandSession
from disque_tx.cli.prompt.shell import Shell
from tests.cli.double import ScriptedServer


class Output(io.BytesIO):
    """A buffered output. ``shown``: what has reached the screen."""

    shown = b""

    def flush(self) -> None:
        """Bring it to the screen."""
        self.shown = self.getvalue()


class RunTests(SynchronousTestCase):
    """``run``."""

    def type(self, keys: str, *answers: bytes) -> int:
        """Type ``keys`` at a prompt on a server with this script; returns the exit status."""
        self.server = ScriptedServer(*answers)
        self.addCleanup(self.server.stop)
        self.out, self.err = Output(), io.StringIO()
        self.history = InMemoryHistory()
        style = Style("formatted")
        address = self.server.address
        session = CommandSession(address, None, style, self.out, self.err, lambda seconds: None)
        self.addCleanup(session.disconnect)
        shell = Shell(session, lambda: 0.0, True, 0.0)
        with create_pipe_input() as device:
            device.send_text(keys)
            return run(shell, self.history, device, DummyOutput())

    def test_commands(self) -> None:
        """Typed commands are sent, answered and added to the history, until ``quit``."""
        status = self.type("PING\rQLEN q\rquit\r", b"+PONG\r\n", b":3\r\n")
        self.assertEqual(0, status)
        self.assertEqual(b"PONG\n(integer) 3\n", self.out.shown)
        self.assertEqual(["PING", "QLEN q", "quit"], self.history.get_strings())

    def test_end_of_input(self) -> None:
        """Control-D ends the program like ``quit``."""
        self.assertEqual(0, self.type("\x04"))

    def test_interrupt_drops_the_line(self) -> None:
        """Control-C discards the line and stays in the program."""
        self.type("DELJOB x\x03PING\rquit\r", b"+PONG\r\n")
        self.assertEqual([[b"PING"]], self.server.requests)

    def test_completion_by_tab(self) -> None:
        """TAB completes an unambiguous word."""
        self.type("qle\t mail\rquit\r", b":1\r\n")
        self.assertEqual([[b"qlen", b"mail"]], self.server.requests)


class CommandCompleterTests(SynchronousTestCase):
    """``CommandCompleter``."""

    def complete(self, line: str) -> list[tuple[str, int]]:
        """The completions of ``line``, and where they start."""
        found = CommandCompleter().get_completions(Document(line), CompleteEvent())
        return [(completion.text, completion.start_position) for completion in found]

    def test_case_is_kept(self) -> None:
        """Completions have the case of the typed letters."""
        self.assertEqual([("addjob", -3)], self.complete("add"))
        self.assertEqual([("REPLICATE", -4)], self.complete("addjob q b 0 REPL"))


class LineHistoryTests(SynchronousTestCase):
    """``LineHistory``."""

    def test_is_stored(self) -> None:
        """The next session starts with the lines of the last one, newest first."""
        path = self.mktemp()
        history = LineHistory(path)
        history.store_string("PING")
        history.store_string("QLEN é")
        self.assertEqual(["QLEN é", "PING"], list(LineHistory(path).load_history_strings()))

    def test_private(self) -> None:
        """Other users cannot read the history."""
        path = self.mktemp()
        LineHistory(path).store_string("PING")
        self.assertEqual(0o600, stat.S_IMODE(os.stat(path).st_mode))

    def test_passwords_are_not_written(self) -> None:
        """A typed password is not written to the history file."""
        path = self.mktemp()
        for line in ("AUTH secret", "3 auth secret", 'config set "requirepass" x', "auth 'open"):
            self.assertTrue(holds_password(line), line)
            LineHistory(path).store_string(line)
        self.assertFalse(os.path.exists(path))
        self.assertFalse(holds_password("ADDJOB auth-mail x 0"))

    def test_unusable_file(self) -> None:
        """Without a writable file for the history, the prompt still works."""
        history = LineHistory(os.path.join(self.mktemp(), "missing", "file"))
        history.store_string("PING")
        self.assertEqual([], list(history.load_history_strings()))
