"""The small commands about the connection and the process."""

from __future__ import annotations

from disque_tx.commands.base.values import Status
from disque_tx.commands.server.admin import (
    auth,
    bgrewriteaof,
    command,
    loadjob,
    monitor,
    monitor_line,
    ping,
    shutdown,
    time,
)
from disque_tx.errors import CommandError
from tests.commands.desk import OK, UNIX_S, DeskCase
from tests.commands.test_table import COMMANDS


class AuthTests(DeskCase):
    """AUTH password."""

    def test_no_password_set(self) -> None:
        """Clients configured with a password learn that the server has none."""
        line = b"ERR Client sent AUTH, but no password is set"
        self.assert_refused(line, auth, b"AUTH", b"x")

    def test_match(self) -> None:
        """The right password opens the connection."""
        self.control.settings[b"requirepass"] = b"secret"
        self.assertEqual(OK, self.call(auth, b"AUTH", b"secret"))
        self.assertEqual(True, self.client.authenticated)

    def test_mismatch_takes_access_away(self) -> None:
        """A wrong password ends an earlier authentication; a prefix of the password is wrong,
        too."""
        self.control.settings[b"requirepass"] = b"secret"
        for wrong in (b"bad", b"secre", b"secret2", b""):
            self.client.authenticated = True
            self.assert_refused(b"ERR invalid password", auth, b"AUTH", wrong)
            self.assertEqual(False, self.client.authenticated)


class SmallTests(DeskCase):
    """PING, TIME, LOADJOB, BGREWRITEAOF, SHUTDOWN."""

    def test_ping(self) -> None:
        """Without an argument the reply is PONG, with one it is the argument, whatever its
        bytes."""
        self.assertEqual(Status(b"PONG"), self.call(ping, b"PING"))
        self.assertEqual(b"\0\r\n", self.call(ping, b"PING", b"\0\r\n"))
        line = b"ERR wrong number of arguments for 'ping' command"
        self.assert_refused(line, ping, b"PING", b"a", b"b")

    def test_time(self) -> None:
        """Seconds and microseconds are two strings, the second one not padded."""
        self.assertEqual([b"%d" % UNIX_S, b"183936"], self.call(time, b"TIME"))
        self.node.begin(0, 7_000_012)
        self.assertEqual([b"7", b"12"], self.call(time, b"TIME"))

    def test_loadjob(self) -> None:
        """Clients cannot add jobs the way the log does."""
        line = b"ERR LOADJOB is a special command only processed from AOF"
        self.assert_refused(line, loadjob, b"LOADJOB", b"x")

    def test_bgrewriteaof(self) -> None:
        """The reply says that the rewrite started, or why it did not."""
        started = Status(b"Background append only file rewriting started")
        self.assertEqual(started, self.call(bgrewriteaof, b"BGREWRITEAOF"))
        self.assertEqual(["rewrite log"], self.control.performed)
        reason = "Background append only file rewriting already in progress"
        self.control.refusal = CommandError("ERR", reason)
        self.assert_refused(b"ERR " + reason.encode(), bgrewriteaof, b"BGREWRITEAOF")

    def test_shutdown(self) -> None:
        """There is no reply: the closed connection shows success."""
        self.assertEqual([], self.answers(shutdown, b"SHUTDOWN"))
        self.assertEqual([], self.answers(shutdown, b"SHUTDOWN", b"rewrite-aof"))
        self.control.is_loading = True
        self.assertEqual([], self.answers(shutdown, b"SHUTDOWN", b"REWRITE-AOF"))
        expected = ["shut down", "rewrite log and shut down", "shut down"]
        self.assertEqual(expected, self.control.performed)

    def test_shutdown_refused(self) -> None:
        """Options of other servers are refused, and a failed rewrite keeps the node running."""
        for words in ([b"SAVE"], [b"NOSAVE"], [b"REWRITE-AOF", b"x"]):
            self.assert_refused(b"ERR syntax error", shutdown, b"SHUTDOWN", *words)
        self.assertEqual([], self.control.performed)
        self.control.refusal = CommandError("ERR", "Errors trying to SHUTDOWN. Check logs.")
        line = b"ERR Errors trying to SHUTDOWN. Check logs."
        self.assert_refused(line, shutdown, b"SHUTDOWN", b"REWRITE-AOF")


class MonitorTests(DeskCase):
    """MONITOR and its lines."""

    def test_twice(self) -> None:
        """Both requests are answered, and the client sees every line once."""
        self.assertEqual(OK, self.call(monitor, b"MONITOR"))
        self.assertEqual(OK, self.call(monitor, b"MONITOR"))
        self.assertEqual([self.client], self.server.monitors)
        self.assertEqual(True, self.client.monitor)

    def test_line(self) -> None:
        """The output stays on one line, whatever the arguments contain."""
        argv = [b"addjob", b'q"', b"\\\n\r\t\a\b\x00\xff", b""]
        expected = (
            b'1795176084.000042 [127.0.0.1:5001] "addjob" "q\\"" "\\\\\\n\\r\\t\\a\\b\\x00\\xff" ""'
        )
        self.assertEqual(expected, monitor_line(self.client, argv, UNIX_S * 1_000_000 + 42))

    def test_unix_socket(self) -> None:
        """A client on a Unix socket is shown with the socket's path."""
        self.client.monitor_addr = b"unix:/tmp/disque.sock"
        expected = b'0.000000 [unix:/tmp/disque.sock] "PING"'
        self.assertEqual(expected, monitor_line(self.client, [b"PING"], 0))

    def test_passwords_hidden(self) -> None:
        """MONITOR never shows the password, not even that of a renamed AUTH."""
        for argv, name in (([b"AUTH", b"secret"], b""), ([b"login", b"secret"], b"auth")):
            line = monitor_line(self.client, argv, 0, name)
            self.assertNotIn(b"secret", line)
            self.assertIn(b'"(redacted)"', line)


READONLY, LOADING, FAST = Status(b"readonly"), Status(b"loading"), Status(b"fast")
AUTH = [b"auth", 2, [READONLY, LOADING, FAST], 0, 0, 0]
HELLO = [b"hello", 1, [READONLY, FAST], 0, 0, 0]


class CommandTests(DeskCase):
    """COMMAND, COMMAND INFO and COMMAND COUNT."""

    def test_all(self) -> None:
        """Every command that can be called is described."""
        table = self.call(command, b"COMMAND")
        assert isinstance(table, list)
        self.assertEqual(COMMANDS, len(table))
        self.assertIn(AUTH, table)
        self.assertEqual(COMMANDS, self.call(command, b"COMMAND", b"count"))

    def test_info(self) -> None:
        """Unknown names yield null at their place in the reply."""
        words = [b"INFO", b"AUTH", b"nosuch", b"hello"]
        self.assertEqual([AUTH, None, HELLO], self.call(command, b"COMMAND", *words))
        self.assertEqual([], self.call(command, b"COMMAND", b"INFO"))

    def test_renamed(self) -> None:
        """A renamed command is found by its new name and described with its original one."""
        self.server.registry.rename(b"auth", b"login")
        self.server.registry.rename(b"hello", b"")
        self.assertEqual(COMMANDS - 1, self.call(command, b"COMMAND", b"COUNT"))
        words = [b"INFO", b"login", b"auth", b"hello"]
        self.assertEqual([AUTH, None, None], self.call(command, b"COMMAND", *words))

    def test_refused(self) -> None:
        """Everything else is refused with the original's text."""
        line = b"ERR Unknown subcommand or wrong number of arguments."
        for words in ([b"FOO"], [b"COUNT", b"x"], [b""]):
            self.assert_refused(line, command, b"COMMAND", *words)
