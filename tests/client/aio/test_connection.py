"""One connection of the asyncio client: which reply is whose, and what becomes of requests when it
ends."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.client.addresses import Address
from disque_tx.client.aio import connection as module
from disque_tx.client.aio.connection import NodeConnection
from disque_tx.client.errors import BrokenReply, ConnectionLost
from disque_tx.client.requests import encoding as requests


class _Wire(asyncio.Transport):
    """A transport in memory. ``sent``: what was written."""

    def __init__(self, sock: socket.socket | None = None) -> None:
        super().__init__({"socket": sock})
        self.sent = b""
        self.aborted = False

    def write(self, data: Any) -> None:
        """Send this."""
        self.sent += bytes(data)

    def abort(self) -> None:
        """The connection is gone."""
        self.aborted = True


class ConnectionTests(SynchronousTestCase):
    """A connection whose replies a test writes."""

    def setUp(self) -> None:
        self.wire = _Wire()
        self.connection = NodeConnection(Address("127.0.0.1", 1), 5.0)
        self.connection.connection_made(self.wire)

    def run_in_loop(self, work: Callable[[], Awaitable[None]]) -> None:
        """Run this with an event loop."""

        async def main() -> None:
            await work()

        asyncio.run(main())

    def test_cancelled(self) -> None:
        """Who is cancelled gets nothing, and the next one gets his own reply."""

        async def work() -> None:
            calls = [
                asyncio.ensure_future(self.connection.call(requests.queue_length("q")))
                for _ in range(3)
            ]
            await asyncio.sleep(0)
            calls[0].cancel()
            await asyncio.wait(calls[:1])
            futures = [future for _, future in self.connection._pending]
            self.assertEqual([True, False, False], [future.cancelled() for future in futures])
            self.connection.data_received(b":1\r\n:2\r\n:3\r\n")
            self.assertEqual([2, 3], [await call for call in calls[1:]])

        self.run_in_loop(work)

    def test_retired(self) -> None:
        """With a new password a connection takes no more requests, and ends with the last reply."""

        async def work() -> None:
            answer = self.connection.send(requests.queue_length("q"))
            self.assertTrue(self.connection.usable)
            self.connection.retire()
            self.assertEqual((False, False), (self.connection.usable, self.wire.aborted))
            self.connection.data_received(b":1\r\n")
            self.assertEqual((1, True), (await answer, self.wire.aborted))

        self.run_in_loop(work)

    def test_closed(self) -> None:
        """What waits for replies fails, once, with the first reason; what follows was not sent."""

        async def work() -> None:
            waiting = self.connection.send(requests.queue_length("q"))
            self.connection.close("first")
            self.assertTrue(self.wire.aborted)
            self.connection.connection_lost(None)
            lost = waiting.exception()
            assert isinstance(lost, ConnectionLost)
            self.assertEqual(("first", True), (lost.reason, lost.sent))
            later = self.connection.send(requests.queue_length("q")).exception()
            assert isinstance(later, ConnectionLost)
            self.assertEqual(("first", False), (later.reason, later.sent))
            self.assertEqual(0, len(self.connection._pending))

        self.run_in_loop(work)

    def test_malformed(self) -> None:
        """After a reply that makes no sense, nothing on the connection is believed."""

        async def work() -> None:
            first, second = self.connection.send_all([requests.queue_length("q")] * 2)
            self.connection.data_received(b"+what\r\n:2\r\n")
            self.assertIsInstance(first.exception(), BrokenReply)
            self.assertIsInstance(second.exception(), ConnectionLost)
            self.assertTrue(self.wire.aborted)

        self.run_in_loop(work)

    def test_long(self) -> None:
        """Many replies may be longer together than one may be; a single one that is longer ends the
        connection."""
        self.patch(module, "_REPLY_BYTES_MAX", 10)

        async def work() -> None:
            answers = self.connection.send_all([requests.queue_length("q")] * 9)
            for number in range(8):
                self.connection.data_received(b":%d\r\n" % number)
            self.assertEqual(list(range(8)), [await answer for answer in answers[:8]])
            self.connection.data_received(b"$1000\r\nlong and longer")
            self.assertIsInstance(answers[8].exception(), BrokenReply)
            self.assertTrue(self.wire.aborted)

        self.run_in_loop(work)

    def test_keepalive(self) -> None:
        """A node that is gone without a word is noticed by a request that waits forever."""
        with socket.socket() as sock:
            NodeConnection(Address("127.0.0.1", 1), 5.0).connection_made(_Wire(sock))
            self.assertTrue(sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE))
