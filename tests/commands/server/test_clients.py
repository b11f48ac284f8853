"""CLIENT: listing, naming, pausing, muting and killing connections."""

from __future__ import annotations

from disque_tx.commands.server.clients import client
from disque_tx.core.base.client import (
    BLOCKED_GETJOB,
    REPLY_OFF,
    REPLY_ON,
    REPLY_SKIP_NEXT,
    Client,
)
from tests.commands.desk import NOW_MS, OK, DeskCase

SYNTAX = b"ERR syntax error"
USAGE = b"ERR Syntax error, try CLIENT (LIST | KILL ip:port | GETNAME | SETNAME connection-name)"


class ListTests(DeskCase):
    """CLIENT LIST."""

    def test_line(self) -> None:
        """Tools read the fields by name, in a fixed order."""
        self.client.fd = 8
        self.client.name = b"abc"
        self.client.last_command = b"client"
        self.client.seen_ms = NOW_MS + 1000
        self.control.buffers[1] = (17, 4096, 2)
        self.node.begin(NOW_MS + 3999, 0)
        self.assertEqual(
            b"id=1 addr=127.0.0.1:5001 fd=8 name=abc age=3 idle=2 flags=N qbuf=17 qbuf-free=0 "
            b"obl=0 oll=2 omem=4096 events=rw cmd=client\n",
            self.call(client, b"CLIENT", b"LIST"),
        )

    def test_order_and_flags(self) -> None:
        """The oldest connection comes first; letters show what a connection is doing."""
        other = self.connect(b"/tmp/sock:0")
        other.unix = other.monitor = other.closing = other.abort_now = True
        other.blocked = BLOCKED_GETJOB
        listed = self.call(client, b"CLIENT", b"list")
        assert isinstance(listed, bytes)
        first, second = listed.splitlines()
        self.assertTrue(first.startswith(b"id=1 "), first)
        self.assertIn(b" flags=ObcAU ", second)
        self.assertIn(b" fd=-1 ", second)  # TLS, or a program that embeds the node
        self.assertIn(b" events=r cmd=NULL", second)


class NameTests(DeskCase):
    """CLIENT GETNAME and SETNAME."""

    def test_name(self) -> None:
        """A name is kept until an empty one clears it."""
        self.assertIsNone(self.call(client, b"CLIENT", b"GETNAME"))
        self.assertEqual(OK, self.call(client, b"CLIENT", b"SETNAME", b"!abc~"))
        self.assertEqual(b"!abc~", self.call(client, b"CLIENT", b"GETNAME"))
        self.assertEqual(OK, self.call(client, b"CLIENT", b"SETNAME", b""))
        self.assertIsNone(self.call(client, b"CLIENT", b"GETNAME"))

    def test_bad_names(self) -> None:
        """No name can break the lines of CLIENT LIST."""
        line = b"ERR Client names cannot contain spaces, newlines or special characters."
        for name in (b"a b", b"a\n", b"\x7f", b"\xe4"):
            self.assert_refused(line, client, b"CLIENT", b"SETNAME", name)

    def test_long_names(self) -> None:
        """A name cannot fill the memory of the node, and of everybody who lists clients."""
        self.assertEqual(OK, self.call(client, b"CLIENT", b"SETNAME", b"a" * 256))
        line = b"ERR Client names have 256 bytes at most."
        self.assert_refused(line, client, b"CLIENT", b"SETNAME", b"a" * 257)
        self.assertEqual(b"a" * 256, self.call(client, b"CLIENT", b"GETNAME"))


class PauseTests(DeskCase):
    """CLIENT PAUSE."""

    def test_longer_wins(self) -> None:
        """A later pause extends the running one, and never shortens it."""
        for milliseconds, end_ms in ((b"100", 100), (b"50", 100), (b"0", 100), (b"200", 200)):
            self.assertEqual(OK, self.call(client, b"CLIENT", b"PAUSE", milliseconds))
            self.assertEqual(NOW_MS + end_ms, self.server.paused_until_ms)

    def test_without_end(self) -> None:
        """The longest possible pause does not end at once because of an overflow."""
        self.assertEqual(OK, self.call(client, b"CLIENT", b"PAUSE", b"9223372036854775807"))
        self.assertEqual(NOW_MS + 2**61, self.server.paused_until_ms)

    def test_refused(self) -> None:
        """A pause must be a number of milliseconds."""
        line = b"ERR timeout is not an integer or out of range"
        self.assert_refused(line, client, b"CLIENT", b"PAUSE", b"abc")
        self.assert_refused(b"ERR timeout is negative", client, b"CLIENT", b"PAUSE", b"-1")
        self.assertEqual(0, self.server.paused_until_ms)


class ReplyTests(DeskCase):
    """CLIENT REPLY."""

    def test_modes(self) -> None:
        """Only ON gets a reply; SKIP does not weaken OFF."""
        for word, answers, mode in (
            (b"SKIP", [], REPLY_SKIP_NEXT),
            (b"off", [], REPLY_OFF),
            (b"SKIP", [], REPLY_OFF),
            (b"ON", [OK], REPLY_ON),
        ):
            self.assertEqual(answers, self.answers(client, b"CLIENT", b"REPLY", word))
            self.assertEqual(mode, self.client.reply_mode)
        self.assert_refused(SYNTAX, client, b"CLIENT", b"REPLY", b"foo")


class KillTests(DeskCase):
    """CLIENT KILL."""

    def setUp(self) -> None:
        super().setUp()
        self.second = self.connect(b"127.0.0.1:5002")
        self.third = self.connect(b"127.0.0.1:5003")

    def doomed(self) -> list[Client]:
        """Connections that are closed at once; each is in the runtime's list."""
        doomed = [each for each in self.server.clients.values() if each.abort_now]
        for each in doomed:
            self.assertIn(each, self.node.outbox.touched)
        return doomed

    def test_by_address(self) -> None:
        """The old form kills by address and reports when there is no such client."""
        self.assertEqual(OK, self.call(client, b"CLIENT", b"KILL", b"127.0.0.1:5002"))
        self.assertEqual([self.second], self.doomed())
        self.assert_refused(b"ERR No such client", client, b"CLIENT", b"KILL", b"1.2.3.4:5")

    def test_self(self) -> None:
        """A client that kills itself gets its reply first, in both forms."""
        self.assertEqual(OK, self.call(client, b"CLIENT", b"KILL", b"127.0.0.1:5001"))
        self.assertEqual((True, False), (self.client.closing, self.client.abort_now))
        self.assertIn(self.client, self.node.outbox.touched)
        self.client.closing = False
        words = [b"ADDR", b"127.0.0.1:5001", b"SKIPME", b"no"]
        self.assertEqual(1, self.call(client, b"CLIENT", b"KILL", *words))
        self.assertEqual(True, self.client.closing)

    def test_filters(self) -> None:
        """Every criterion must match, and the caller is spared unless SKIPME says otherwise."""
        both = [b"ADDR", b"127.0.0.1:5002", b"ID", b"3"]
        self.assertEqual(0, self.call(client, b"CLIENT", b"KILL", *both))
        self.assertEqual(1, self.call(client, b"CLIENT", b"kill", b"id", b"3"))
        self.assertEqual([self.third], self.doomed())
        self.assertEqual(2, self.call(client, b"CLIENT", b"KILL", b"TYPE", b"normal"))
        self.assertEqual(False, self.client.closing)
        self.assertEqual(2, self.call(client, b"CLIENT", b"KILL", b"SKIPME", b"YES"))

    def test_id_zero(self) -> None:
        """No connection has the number 0, so it must not match all of them."""
        self.assertEqual(0, self.call(client, b"CLIENT", b"KILL", b"ID", b"0"))
        self.assertEqual([], self.doomed())

    def test_refused(self) -> None:
        """An invalid filter kills no client."""
        self.assert_refused(SYNTAX, client, b"CLIENT", b"KILL")
        for words in ([b"ID", b"2", b"ADDR"], [b"FOO", b"1"], [b"SKIPME", b"maybe"]):
            self.assert_refused(SYNTAX, client, b"CLIENT", b"KILL", *words)
        line = b"ERR value is not an integer or out of range"
        self.assert_refused(line, client, b"CLIENT", b"KILL", b"ID", b"abc")
        line = b"ERR Unknown client type 'foo'"
        self.assert_refused(line, client, b"CLIENT", b"KILL", b"TYPE", b"foo")
        self.assertEqual([], self.doomed())


class UsageTests(DeskCase):
    """Everything else."""

    def test_usage(self) -> None:
        """Unknown words and wrong counts get the original's text."""
        for words in ([b"FOO"], [b"LIST", b"x"], [b"SETNAME"], [b"PAUSE"], [b"REPLY"]):
            self.assert_refused(USAGE, client, b"CLIENT", *words)
