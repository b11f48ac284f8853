"""What clients of plugins may do."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.config.settings import Settings
from disque_tx.errors import CommandError
from disque_tx.plugins.values import Role
from disque_tx.services.clients.roles import Passwords, check_role
from disque_tx.services.machine.guesses import TRIES_MAX, TRY_MS, Guesses

_NETWORK = "192.0.2.7/32"


class PasswordTests(SynchronousTestCase):
    """Roles by password."""

    def setUp(self) -> None:
        self.now_ms = 50_000
        self.settings = Settings(dir="/", requirepass=b"secret", readonly_password=b"look")
        self.passwords = Passwords(self.settings, Guesses(lambda: self.now_ms))

    def test_roles(self) -> None:
        """Each of the two passwords has its role, and nothing else has one."""
        cases = [(b"secret", Role.FULL), (b"look", Role.READER), (b"", Role.NONE)]
        cases += [(b"Secret", Role.NONE)]
        for password, role in cases:
            self.assertIs(role, self.passwords.role(password, _NETWORK), password)
        self.assertIs(Role.NONE, self.passwords.role(None, _NETWORK))

    def test_open(self) -> None:
        """A node without a password serves everybody whom protected mode lets in."""
        self.settings.requirepass = b""
        self.assertIs(Role.FULL, self.passwords.role(None, _NETWORK))
        self.assertIs(Role.FULL, self.passwords.role(b"anything", _NETWORK))

    def test_no_empty_reader(self) -> None:
        """Without a read-only password, an empty one opens nothing."""
        self.settings.readonly_password = b""
        self.assertIs(Role.NONE, self.passwords.role(b"", _NETWORK))

    def test_limited(self) -> None:
        """Guessing is slow: after ten wrong passwords even the right one is refused for a while,
        from this network only."""
        for _ in range(TRIES_MAX):
            self.passwords.role(b"guess", _NETWORK)
        with self.assertRaisesRegex(CommandError, "try again in 6 seconds"):
            self.passwords.role(b"secret", _NETWORK)
        self.assertIs(Role.FULL, self.passwords.role(b"secret", "192.0.2.8/32"))
        self.now_ms += TRY_MS
        self.assertIs(Role.FULL, self.passwords.role(b"secret", _NETWORK))

    def test_missing_is_no_guess(self) -> None:
        """A client that sends no password locks nobody out."""
        for _ in range(2 * TRIES_MAX):
            self.passwords.role(None, _NETWORK)
        self.assertIs(Role.FULL, self.passwords.role(b"secret", _NETWORK))


class RoleTests(SynchronousTestCase):
    """Commands by role."""

    def test_full(self) -> None:
        """The password of the node allows everything."""
        check_role(Role.FULL, (b"SHUTDOWN",))

    def test_none(self) -> None:
        """Without a password there is nothing."""
        error = self.assertRaises(CommandError, check_role, Role.NONE, (b"PING",))
        self.assertEqual("NOAUTH", error.code)

    def test_reader(self) -> None:
        """The read-only password reads, and changes nothing."""
        allowed: list[tuple[bytes, ...]] = [
            (b"INFO", b"all"), (b"qscan", b"0"), (b"Show", b"id"), (b"CLIENT", b"LIST"),
            (b"CONFIG", b"GET", b"*"), (b"SLOWLOG", b"GET"), (b"HELLO",),
            (b"SCHEDULE", b"LIST"), (b"QPOLICY", b"GET", b"q"), (b"WAITJOB", b"id"), (b"QLIST",),
            (b"ACTIONS", b"9"),
        ]  # fmt: skip
        for words in allowed:
            check_role(Role.READER, words)
        refused: list[tuple[bytes, ...]] = [
            (b"ADDJOB", b"q", b"b", b"0"), (b"GETJOB", b"FROM", b"q"), (b"PAUSE", b"q", b"state"),
            (b"CLIENT", b"KILL", b"x"), (b"CONFIG", b"SET", b"a", b"b"), (b"CONFIG",),
            (b"SLOWLOG", b"RESET"), (b"SHUTDOWN",), (b"JSCAN", b"0", b"BusyLoop"), (b"MONITOR",),
            (b"HELLO", b"3"), (b"DEBUG", b"SLEEP", b"1"), (b"CLUSTER", b"FORGET", b"x"),
            (b"SCHEDULE", b"RUN", b"x"), (b"QPOLICY", b"DEL", b"x"), (b"QFLUSH", b"q"),
            (b"SCHEDULE",), (b"QMOVE", b"a", b"b"), (b"ACTIONS", b"ADD", b"1", b"DROP", b"q"),
        ]  # fmt: skip
        for words in refused:
            error = self.assertRaises(CommandError, check_role, Role.READER, words)
            self.assertEqual("NOPERM", error.code)
