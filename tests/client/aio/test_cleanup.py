"""What the asyncio client closes, returns and forgets."""

from __future__ import annotations

import asyncio
from typing import Any

from disque_tx.client import AuthenticationRefused, ClientError, ConnectionLost, Refused
from disque_tx.client.addresses import Address
from disque_tx.client.aio import Disque
from disque_tx.client.aio.connection import NodeConnection
from disque_tx.client.requests import encoding as requests
from tests.client.aio.test_connection import _Wire
from tests.client.aio.test_session import AsyncTestCase
from tests.client.scripted import HANG_UP, NO_ANSWER, array, job

_PONG = b"+PONG\r\n"
_NIL = b"*-1\r\n"
_LEAVING = b"-LEAVING this node is leaving the cluster\r\n"


class ConnectionsTests(AsyncTestCase):
    """Connections of a client to its node."""

    async def wait_for_jobs(self, client: Disque) -> Any:
        """A GETJOB that may wait: the reply, or the error."""
        try:
            return await client.get_jobs("q", timeout_ms=5000)
        except ClientError as error:
            return type(error)

    def test_used_again(self) -> None:
        """A connection that waits for jobs is used again, also after an error reply; one that was
        lost is not."""
        node = self.node(PING=_PONG)
        waited = (array(job()), b"-ERR no\r\n", array(job()), HANG_UP, array(job()))
        node.answer("GETJOB", *[reply for one in waited for reply in (_NIL, one)])

        async def use(client: Disque) -> list[Any]:
            await client.ping()
            found = [await self.wait_for_jobs(client) for _ in range(3)]
            self.assertEqual(2, node.connections)
            return [*found, *[await self.wait_for_jobs(client) for _ in range(2)]]

        first, second, *others = self.run_client(use, node)
        self.assertEqual((1, Refused), (len(first), second))
        self.assertEqual([1, 1], [len(one) for one in (others[0], others[-1])])

    def test_all_closed(self) -> None:
        """A client that is closed has no connection left: not the shared one, not those that are
        idle, and not those on which it waits."""
        node = self.node(PING=_PONG, GETJOB=_NIL)
        node.answer("GETJOB TIMEOUT", array(job()), NO_ANSWER)

        async def use(client: Disque) -> asyncio.Task[Any]:
            await client.ping()
            await self.wait_for_jobs(client)
            waiting = asyncio.create_task(self.wait_for_jobs(client))
            idle = asyncio.create_task(self.wait_for_jobs(client))
            await self.wait_until(lambda: node.commands().count("GETJOB") == 6)
            self.assertFalse(idle.done())
            await client.close()
            self.assertEqual([ConnectionLost] * 2, [await waiting, await idle])
            self.assertEqual("PONG", await client.ping())
            return waiting

        self.run_client(use, node)
        self.assertEqual(4, node.connections)
        for _ in range(4):
            node.wait_for_end()

    def test_closed_meanwhile(self) -> None:
        """A request that looks for a node when the client is closed ends as well, and leaves no
        connection; a new password ends none."""
        node = self.node(PING=_PONG, AUTH=b"+OK\r\n")

        async def use(client: Disque) -> object:
            asking = asyncio.create_task(client.ping())
            await self.wait_until(lambda: node.connections == 1)
            await client._session.set_password("secret")
            self.assertEqual("PONG", await asking)
            asking = asyncio.create_task(client.ping())
            while not asking.done():
                await client.close()
                await asyncio.sleep(0)
            return type(asking.exception())

        self.assertEqual(ConnectionLost, self.run_client(use, node))
        for _ in range(node.connections):
            node.wait_for_end()

    def test_left(self) -> None:
        """A node that leaves has no idle connection of the client any more, so that it can be
        stopped."""
        first, second = self.cluster(2, PING=_PONG)
        first.answer("GETJOB", _NIL, array(job()))
        first.answer("PING", _LEAVING)

        async def use(client: Disque) -> None:
            await self.wait_for_jobs(client)
            self.assertEqual("PONG", await client.ping())
            for _ in range(2):
                await asyncio.to_thread(first.wait_for_end)

        self.run_client(use, first)
        self.assertEqual((2, 1), (first.connections, second.connections))

    def test_refused(self) -> None:
        """A connection whose password is refused, or whose node is none, is closed at once."""
        cases: tuple[dict[str, Any], ...] = (
            {"AUTH": b"-ERR invalid password\r\n"},
            {"AUTH": b"+OK\r\n", "HELLO": b":1\r\n"},
        )
        for answers in cases:
            node = self.node(**answers)

            async def use(client: Disque, node: Any = node) -> None:
                try:
                    await client.ping()
                except ClientError as error:
                    wrong_password = isinstance(error, AuthenticationRefused)
                    self.assertEqual("HELLO" not in node.answers, wrong_password)
                await asyncio.to_thread(node.wait_for_end)

            self.run_client(use, node, password="secret", patience_s=0)

    def test_places(self) -> None:
        """Requests that were cancelled while they waited for jobs leave their places to others."""
        node = self.node(GETJOB=_NIL)
        node.answer("GETJOB TIMEOUT", NO_ANSWER, NO_ANSWER, array(job()))

        async def use(client: Disque) -> int:
            waiting = [asyncio.create_task(self.wait_for_jobs(client)) for _ in range(2)]
            await self.wait_until(lambda: node.commands().count("GETJOB") == 4)
            for one in waiting:
                one.cancel()
            await asyncio.wait(waiting)
            return len(await self.wait_for_jobs(client))

        self.assertEqual(1, self.run_client(use, node, connections_max=2))


class HangUpTests(AsyncTestCase):
    """The end of a connection that waits for jobs."""

    def test_half_way(self) -> None:
        """What can be closed half-way still gets the reply that is on its way; with TLS it is
        closed."""
        for half_way in (True, False):
            wire = _HalfWire(half_way)
            connection = NodeConnection(Address("127.0.0.1", 1), 5.0)
            connection.connection_made(wire)

            async def work(connection: NodeConnection = connection) -> object:
                future = connection.send(requests.queue_length("q"))
                connection.hang_up()
                if not connection._pending:
                    return type(future.exception())
                connection.data_received(b":7\r\n")
                return await future

            self.assertEqual(7 if half_way else ConnectionLost, asyncio.run(work()))
            self.assertEqual((half_way, not half_way), (wire.ended, wire.aborted))


class _HalfWire(_Wire):
    """``ended``: nothing more is sent."""

    def __init__(self, half_way: bool) -> None:
        super().__init__()
        self.ended = False
        self._half_way = half_way

    def can_write_eof(self) -> bool:
        """Whether it can be closed half-way."""
        return self._half_way

    def write_eof(self) -> None:
        """Send nothing more."""
        self.ended = True
