"""Lines at the prompt, with a scripted server."""

from __future__ import annotations

import io

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.cli.connection import ServerAddress, ServerConnectionLost
from disque_tx.cli.formatting import Style
from disque_tx.cli.prompt.session import CommandSession
from disque_tx.cli.prompt.shell import Quit, Shell
from tests.acceptance.daemon import free_port
from tests.cli.double import CLOSE, Screen, ScriptedServer


class ShellTests(SynchronousTestCase):
    """``Shell``, interactive unless a test says otherwise."""

    def setUp(self) -> None:
        self.clock = Clock()
        self.out = io.BytesIO()
        self.err = io.StringIO()

    def shell(self, *answers: bytes, interactive: bool = True) -> Shell:
        """A shell connected to a server with this script."""
        self.server = ScriptedServer(*answers)
        self.addCleanup(self.server.stop)
        return self.shell_at(self.server.address, interactive)

    def shell_at(self, address: ServerAddress, interactive: bool = True) -> Shell:
        """A shell for this address."""
        style = Style("formatted")
        session = CommandSession(address, None, style, self.out, self.err, self.clock.advance)
        self.addCleanup(session.disconnect)
        return Shell(session, self.clock.seconds, interactive, 0.25)

    def test_prompt_shows_the_connection(self) -> None:
        """The prompt shows to which server the next command is sent."""
        shell = self.shell()
        self.assertEqual("not connected> ", shell.prompt())
        shell.greet()
        self.assertEqual(f"127.0.0.1:{self.server.port}> ", shell.prompt())

    def test_seen_at_once(self) -> None:
        """What the shell says itself is seen at once, not with the next reply."""
        shell = self.shell()
        shell.session.out = screen = Screen()
        shell.execute(b"help qlen")
        self.assertIn(b"QLEN queue", screen.seen())

    def test_server_is_down(self) -> None:
        """Without a server the shell continues and prints why the command failed."""
        shell = self.shell_at(ServerAddress("127.0.0.1", free_port()))
        shell.greet()
        shell.execute(b"PING")
        self.assertEqual(2, self.err.getvalue().count("Could not connect to Disque at 127.0.0.1"))
        self.assertEqual("not connected> ", shell.prompt())

    def test_quoting(self) -> None:
        """Words are quoted as everywhere in Disque; wrong quotes are reported."""
        shell = self.shell(b"+PONG\r\n")
        shell.execute(b'PING "a\\x41 b"')
        shell.execute(b'PING "a')
        self.assertEqual([[b"PING", b"aA b"]], self.server.requests)
        self.assertEqual("Invalid argument(s)\n", self.err.getvalue())

    def test_number_repeats(self) -> None:
        """A leading number repeats the command, with the pause of ``-i``."""
        shell = self.shell(b":1\r\n", b":2\r\n", b":3\r\n")
        shell.execute(b"3 QLEN q")
        self.assertEqual([[b"QLEN", b"q"]] * 3, self.server.requests)
        self.assertEqual(0.5, self.clock.seconds())

    def test_lone_number_is_a_command(self) -> None:
        """A number alone is sent as a command."""
        shell = self.shell(b"-ERR unknown command '5'\r\n")
        shell.execute(b"5")
        self.assertEqual([[b"5"]], self.server.requests)

    def test_one_retry(self) -> None:
        """When a connection was closed while idle, the shell reconnects and sends the command
        again."""
        shell = self.shell(b"+PONG\r\n", CLOSE, b"+PONG\r\n")
        shell.execute(b"PING")
        shell.execute(b"PING")
        self.assertEqual(b"PONG\nPONG\n", self.out.getvalue())
        self.assertEqual("", self.err.getvalue())

    def test_retry_by_command(self) -> None:
        """Only MONITOR is not sent again: whoever watches would not see that something is missing.
        A queue of that name is no reason."""
        shell = self.shell(b"+PONG\r\n", CLOSE, b":5\r\n", CLOSE)
        shell.execute(b"PING")
        shell.execute(b"QLEN monitor")
        self.assertEqual((b"PONG\n(integer) 5\n", ""), (self.out.getvalue(), self.err.getvalue()))
        shell.execute(b"Monitor q")
        self.assertEqual("Error: Server closed the connection\n", self.err.getvalue())
        self.assertEqual(4, len(self.server.requests))

    def test_only_one_retry(self) -> None:
        """A command that closes every connection is reported and not sent again."""
        shell = self.shell(b"+PONG\r\n", CLOSE, CLOSE, b"+PONG\r\n")
        shell.execute(b"PING")
        shell.execute(b"PING")
        self.assertEqual("Error: Server closed the connection\n", self.err.getvalue())
        self.assertEqual("not connected> ", shell.prompt())

    def test_no_retry_without_a_user(self) -> None:
        """Without a user at the prompt, a lost connection ends the shell."""
        shell = self.shell(CLOSE, interactive=False)
        self.assertRaises(ServerConnectionLost, shell.execute, b"PING")

    def test_time_of_slow_commands(self) -> None:
        """From half a second on, the duration is shown, but only to users at the prompt."""
        for interactive, expected in ((True, b"1\n1\n1\n(0.50s)\n"), (False, b"1\n1\n1\n")):
            self.out.truncate(0)
            self.out.seek(0)
            shell = self.shell(b"+1\r\n", b"+1\r\n", b"+1\r\n", interactive=interactive)
            shell.execute(b"3 PING")
            self.assertEqual(expected, self.out.getvalue())

    def test_interrupt_keeps_the_shell(self) -> None:
        """Control-C during a command closes the connection, whose replies are out of step, but not
        the shell."""
        shell = self.shell(b"+PONG\r\n", b"+PONG\r\n")

        def interrupt(seconds: float) -> None:
            raise KeyboardInterrupt

        shell.session.sleep = interrupt
        shell.execute(b"2 PING")
        self.assertEqual("Interrupted; the connection is closed\n", self.err.getvalue())
        self.assertFalse(shell.session.connected)
        shell.execute(b"PING")
        self.assertEqual(b"PONG\nPONG\n", self.out.getvalue())

    def test_help(self) -> None:
        """``help`` and ``?`` work without the server."""
        shell = self.shell()
        shell.execute(b"help qlen")
        shell.execute(b"?")
        self.assertIn(b"QLEN queue", self.out.getvalue())
        self.assertIn(b"help @<group>", self.out.getvalue())
        self.assertEqual([], self.server.requests)

    def test_leave(self) -> None:
        """``quit`` and ``exit`` always end the shell."""
        for word in (b"quit", b"EXIT"):
            self.assertRaises(Quit, self.shell().execute, word)

    def test_clear(self) -> None:
        """``clear`` clears the screen."""
        self.shell().execute(b"clear")
        self.assertEqual(b"\x1b[H\x1b[2J", self.out.getvalue())

    def test_connect(self) -> None:
        """``connect`` connects to another server, and explains a wrong port."""
        shell = self.shell()
        other = ScriptedServer(b"+PONG\r\n")
        self.addCleanup(other.stop)
        self.addCleanup(shell.session.disconnect)
        shell.execute(b"connect 127.0.0.1 %d" % other.port)
        shell.execute(b"PING")
        self.assertEqual([[b"PING"]], other.requests)
        shell.execute(b"connect 127.0.0.1 x")
        self.assertIn("connect <host> <port>", self.err.getvalue())

    def test_quit_command_in_session(self) -> None:
        """After QUIT with a repetition the shell knows that the connection is closed."""
        shell = self.shell(b"+OK\r\n")
        shell.execute(b"1 QUIT")
        self.assertFalse(shell.session.connected)
