"""Clients with the read-only password."""

from __future__ import annotations

from disque_tx.commands.base.readonly import check_reader
from disque_tx.errors import CommandError
from tests.services.nodebench import FIRST_ID, NodeCase


class ReaderTests(NodeCase):
    """A second password for dashboards and scripts that must not be able to do harm."""

    def setUp(self) -> None:
        super().setUp()
        self.control.settings[b"requirepass"] = b"secret"  # type: ignore[attr-defined]
        self.control.settings[b"readonly-password"] = b"look"  # type: ignore[attr-defined]
        self.server.password_required = True

    def test_reads(self) -> None:
        """Everything can be read."""
        self.turn(b"AUTH secret", b"ADDJOB q b 0")
        replies = self.turn(b"AUTH look", b"QLEN q", b"PING", b"CLIENT SETNAME x", b"QUIT")
        self.assertEqual(b"+OK\r\n:1\r\n+PONG\r\n+OK\r\n+OK\r\n", replies)
        self.assertIn(FIRST_ID, self.turn(b"AUTH look", b"QPEEK q 1"))

    def test_cluster(self) -> None:
        """It can be asked whether the node leaves the cluster, but it cannot be told to."""
        replies = self.turn(b"AUTH look", b"CLUSTER LEAVING", b"CLUSTER LEAVING yes")
        self.assertEqual(2, replies.count(b"+"))
        self.assertIn(b"-NOPERM", replies)
        self.assertIs(False, self.node.membership.leaving)

    def test_changes(self) -> None:
        """Nothing can be changed, and no job taken; the error has a code of its own."""
        for request in (b"ADDJOB q b 0", b"GETJOB NOHANG FROM q", b"SHUTDOWN", b"MONITOR"):
            replies = self.turn(b"AUTH look", request)
            refusal = b"+OK\r\n-NOPERM The read-only password does not allow this.\r\n"
            self.assertEqual(refusal, replies, request)

    def test_hello(self) -> None:
        """Clients of Redis get the same rights by HELLO."""
        replies = self.turn(b"HELLO 2 AUTH default look", b"ADDJOB q b 0")
        self.assertIn(b"proto", replies)
        self.assertIn(b"-NOPERM", replies)

    def test_more_rights(self) -> None:
        """The other password gives all rights, on the same connection; a wrong one none."""
        replies = self.turn(b"AUTH look", b"AUTH secret", b"ADDJOB q b 0")
        self.assertEqual(b"+OK\r\n+OK\r\n+%s\r\n" % FIRST_ID, replies)
        replies = self.turn(b"AUTH look", b"HELLO 2 AUTH nobody secret", b"PING")
        self.assertIn(b"-WRONGPASS", replies)
        self.assertIn(b"-NOAUTH", replies)
        replies = self.turn(b"AUTH look", b"AUTH wrong", b"QLEN q")
        self.assertIn(b"-NOAUTH", replies)

    def test_secrets(self) -> None:
        """It does not show the password that gives all rights."""
        self.assertNotIn(b"secret", self.turn(b"AUTH look", b"CONFIG GET *"))
        self.assertIn(b"(redacted)", self.turn(b"AUTH look", b"CONFIG GET requirepass"))
        self.assertIn(b"secret", self.turn(b"AUTH secret", b"CONFIG GET *"))

    def test_without(self) -> None:
        """Without such a password the empty one opens nothing."""
        self.control.settings[b"readonly-password"] = b""  # type: ignore[attr-defined]
        for password in (b'""', b"look"):
            replies = self.turn(b"AUTH %s" % password)
            self.assertEqual(b"-ERR invalid password\r\n", replies)

    def test_renamed(self) -> None:
        """A command keeps its rights under another name."""
        self.server.registry.rename(b"deljob", b"erase")
        self.server.registry.rename(b"qlen", b"deljob")
        self.runtime.dispatcher.names_changed()
        replies = self.turn(b"AUTH look", b"ERASE x", b"DELJOB q")
        self.assertIn(b"-NOPERM", replies)
        self.assertTrue(replies.endswith(b":0\r\n"))

    def test_check(self) -> None:
        """What only concerns the connection is allowed; to close those of others is not."""
        check_reader(b"client", [b"CLIENT", b"Reply", b"on"])
        for words in ([b"CLIENT", b"KILL", b"x"], [b"CLIENT", b"PAUSE", b"1"], [b"CLIENT"]):
            with self.assertRaisesRegex(CommandError, "NOPERM"):
                check_reader(b"client", words)
