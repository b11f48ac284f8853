"""The node's operations as Deferreds."""

from __future__ import annotations

from twisted.internet.defer import CancelledError

from disque_tx.commands.base.values import Status
from disque_tx.errors import CommandError
from disque_tx.services.clients.embedded import NodeService
from tests.services.nodebench import FIRST_ID, NodeCase


class CallTests(NodeCase):
    """Calls of programs that embed a node."""

    def setUp(self) -> None:
        super().setUp()
        self.service = NodeService(self.runtime)

    def test_values(self) -> None:
        """Replies are values, as documented."""
        call = self.service.call
        self.assertEqual(Status(FIRST_ID), self.successResultOf(call(b"ADDJOB", b"q", b"b", b"0")))
        self.assertEqual(1, self.successResultOf(call(b"QLEN", b"q")))
        self.assertEqual(
            [[b"q", FIRST_ID, b"b"]], self.successResultOf(call(b"GETJOB", b"FROM", b"q"))
        )
        self.assertIsNone(self.successResultOf(call(b"GETJOB", b"NOHANG", b"FROM", b"q")))

    def test_error(self) -> None:
        """An error reply is an exception with its code and text."""
        failure = self.failureResultOf(self.service.call(b"ADDJOB", b"q"), CommandError)
        self.assertEqual(
            ("ERR", "wrong number of arguments for 'addjob' command"),
            (failure.value.code, failure.value.text),
        )

    def test_hello(self) -> None:
        """A change of protocol gets a reply like everything else."""
        answer = self.successResultOf(self.service.call(b"HELLO", b"3"))
        self.assertEqual(3, answer[b"proto"])

    def test_waits(self) -> None:
        """A call that blocks fires with its reply, and leaves no state behind."""
        call = self.service.call(b"GETJOB", b"FROM", b"q")
        self.assertNoResult(call)
        self.turn(b"ADDJOB q b 0")
        self.assertEqual([[b"q", FIRST_ID, b"b"]], self.successResultOf(call))
        self.assertEqual({}, self.runtime.calls)

    def test_timeout(self) -> None:
        """A call's own TIMEOUT ends it."""
        call = self.service.call(b"GETJOB", b"TIMEOUT", b"100", b"FROM", b"q")
        self.reactor.advance(0.2)
        self.assertIsNone(self.successResultOf(call))

    def test_cancelled(self) -> None:
        """A cancelled call loses no job."""
        call = self.service.call(b"GETJOB", b"FROM", b"q")
        call.cancel()
        self.failureResultOf(call, CancelledError)
        self.assertEqual(b"+%s\r\n:1\r\n" % FIRST_ID, self.turn(b"ADDJOB q b 0", b"QLEN q"))

    def test_log_first(self) -> None:
        """Results are delivered after the log was written."""
        fired: list[object] = []
        at_commit: list[int] = []
        self.commits.before = lambda: at_commit.append(len(fired))
        self.service.call(b"ADDJOB", b"q", b"b", b"0").addCallback(fired.append)
        self.assertEqual(([0], 1), (at_commit, len(fired)))

    def test_within_a_turn(self) -> None:
        """A call during a turn belongs to that turn."""
        with self.runtime.turn():
            call = self.service.call(b"ADDJOB", b"q", b"b", b"0")
            self.assertNoResult(call)
        self.assertEqual(Status(FIRST_ID), self.successResultOf(call))
        self.assertEqual(1, self.commits.commits)

    def test_called_from_a_result(self) -> None:
        """A callback of one call may make the next."""
        first = self.service.call(b"ADDJOB", b"q", b"b", b"0")
        second = first.addCallback(lambda _: self.service.call(b"QLEN", b"q"))
        self.assertEqual(1, self.successResultOf(second))

    def test_no_connection(self) -> None:
        """Embedded calls are not listed as clients, and need no password."""
        self.server.password_required = True
        self.assertEqual(b"", self.successResultOf(self.service.call(b"CLIENT", b"LIST")))
