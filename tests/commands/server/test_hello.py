"""HELLO in its two forms."""

from __future__ import annotations

from disque_tx.commands.server.hello import hello
from disque_tx.messages.nodes import LEAVING, PFAIL, NodeEntry
from tests.commands.desk import ME, DeskCase

PEER = b"b" * 40
WRONG_PASSWORD = b"WRONGPASS invalid username-password pair or user is disabled."


class BareTests(DeskCase):
    """Disque's own form, which lists the nodes of the cluster."""

    def test_single_node(self) -> None:
        """A node that does not know its address yet shows the one that the client connected to."""
        self.assertEqual([1, ME, [ME, b"127.0.0.1", b"7711", b"1"]], self.call(hello, b"HELLO"))

    def test_own_address(self) -> None:
        """The announced address takes precedence over the one that other nodes reported."""
        self.membership.learn_ip(b"10.0.0.1")
        self.assertEqual([1, ME, [ME, b"10.0.0.1", b"7711", b"1"]], self.call(hello, b"HELLO"))
        self.membership.announce(b"192.0.2.1", 8000, 0)
        self.assertEqual([1, ME, [ME, b"192.0.2.1", b"8000", b"1"]], self.call(hello, b"HELLO"))

    def test_cluster(self) -> None:
        """Clients choose nodes by their priority; all numbers are strings."""
        self.membership.add(NodeEntry(PEER, b"::1", 7712, PFAIL, 0))
        self.membership.set_leaving(True)
        expected = [1, ME, [ME, b"127.0.0.1", b"7711", b"100"], [PEER, b"::1", b"7712", b"10"]]
        self.assertEqual(expected, self.call(hello, b"HELLO"))
        self.membership.myself.flags &= ~LEAVING

    def test_other_host(self) -> None:
        """A client of another host cannot use a loopback address: it gets the address of this host
        that it is connected to."""
        self.membership.learn_ip(b"127.0.0.1")
        self.membership.add(NodeEntry(PEER, b"127.0.0.1", 7712, PFAIL, 0))
        self.control.ip = b"10.0.0.1"
        expected = [[ME, b"10.0.0.1", b"7711", b"1"], [PEER, b"10.0.0.1", b"7712", b"10"]]
        self.assertEqual([1, ME, *expected], self.call(hello, b"HELLO"))

    def test_unknown_address(self) -> None:
        """A node whose address is not known has none, and not that of this host."""
        self.membership.add(NodeEntry(PEER, b"", 0, PFAIL, 0))
        expected = [[ME, b"127.0.0.1", b"7711", b"1"], [PEER, b"", b"0", b"10"]]
        self.assertEqual([1, ME, *expected], self.call(hello, b"HELLO"))

    def test_words(self) -> None:
        """HELLO has no argument or a version; everything else is a wrong number of arguments."""
        command = self.server.registry.by_name[b"hello"]
        accepted = ([b"HELLO"], [b"HELLO", b"3"], [b"HELLO", b"9", b"AUTH", b"u", b"p"])
        for argv in accepted:
            self.assertEqual(True, command.accepts(argv), argv)
        for argv in ([b"HELLO", b"foo"], [b"HELLO", b""]):
            self.assertEqual(False, command.accepts(argv), argv)

    def test_before_authentication(self) -> None:
        """Only the form that can authenticate runs unauthenticated."""
        command = self.server.registry.by_name[b"hello"]
        self.assertEqual(False, command.before_auth([b"HELLO"]))
        self.assertEqual(True, command.before_auth([b"HELLO", b"3"]))


class RedisTests(DeskCase):
    """The handshake of Redis clients."""

    def protect(self) -> None:
        """Require a password."""
        self.control.settings[b"requirepass"] = b"secret"
        self.server.password_required = True

    def test_switches(self) -> None:
        """The reply is already written in the new protocol."""
        expected = {
            b"server": b"disque",
            b"version": b"1.0-rc1",
            b"proto": 3,
            b"id": 1,
            b"mode": b"standalone",
            b"role": b"master",
            b"modules": [],
        }
        self.assertEqual(expected, self.call(hello, b"HELLO", b"3"))
        self.assertEqual(3, self.client.protocol)
        self.assertEqual(["protocol 3 for client 1"], self.control.performed)

    def test_other_versions(self) -> None:
        """A client that gets this error falls back to the old protocol."""
        for version in (b"1", b"4", b"-3"):
            line = b"NOPROTO unsupported protocol version"
            self.assert_refused(line, hello, b"HELLO", version)
        self.assertEqual(2, self.client.protocol)

    def test_options(self) -> None:
        """User, password and name in one round trip."""
        self.protect()
        words = [b"HELLO", b"2", b"setname", b"worker", b"auth", b"default", b"secret"]
        self.assertIsInstance(self.call(hello, *words), dict)
        self.assertEqual((True, b"worker"), (self.client.authenticated, self.client.name))

    def test_unauthenticated(self) -> None:
        """Without the password the node reveals nothing and changes nothing."""
        self.protect()
        words = [b"HELLO", b"3", b"SETNAME", b"worker"]
        line = (
            b"NOAUTH HELLO must be called with the client already authenticated, otherwise the "
            b"HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and "
            b"select the RESP protocol version at the same time"
        )
        self.assert_refused(line, hello, *words)
        self.assertEqual((2, b""), (self.client.protocol, self.client.name))

    def test_wrong_password(self) -> None:
        """A wrong password or user ends an earlier authentication, like AUTH does."""
        self.protect()
        for user, password in ((b"default", b"bad"), (b"admin", b"secret")):
            self.client.authenticated = True
            words = [b"HELLO", b"3", b"AUTH", user, password]
            self.assert_refused(WRONG_PASSWORD, hello, *words)
            self.assertEqual(False, self.client.authenticated)

    def test_bad_options(self) -> None:
        """The error names the invalid option, also one that lacks its value."""
        for words in ([b"FOO"], [b"AUTH", b"default"], [b"SETNAME"]):
            line = b"ERR syntax error in HELLO option '%s'" % words[0]
            self.assert_refused(line, hello, b"HELLO", b"3", *words)

    def test_bad_name(self) -> None:
        """A name that would corrupt CLIENT LIST is refused before anything changes."""
        line = b"ERR Client names cannot contain spaces, newlines or special characters."
        self.assert_refused(line, hello, b"HELLO", b"3", b"SETNAME", b"a b")
        self.assertEqual(2, self.client.protocol)
