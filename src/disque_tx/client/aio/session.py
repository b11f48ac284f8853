"""Executes requests at whichever node answers, for the asyncio client.

A request that could not be sent, or was refused because the node leaves or loads, goes to another
node. One that was sent and not answered goes to another node only if it is repeatable; otherwise
it raises :class:`OutcomeUnknown`.

Requests that are answered at once share one connection per node; one that may wait (GETJOB, ADDJOB
for its copies) has one of its own for that time.
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Sequence
from random import Random
from typing import Any, Final, TypeVar

import attrs

from disque_tx.client.addresses import Address, Seeds
from disque_tx.client.aio.connection import NodeConnection, connect
from disque_tx.client.aio.searching import CLOSED, AsyncSearch
from disque_tx.client.blocking.servers import Servers
from disque_tx.client.errors import (
    AuthenticationRefused,
    CannotConnect,
    ClientError,
    ConnectionLost,
    Leaving,
    Loading,
    NameNotFound,
    OutcomeUnknown,
)
from disque_tx.client.nodes import LOOKUP_PAUSE_S, Nodes
from disque_tx.client.options import ConnectionOptions
from disque_tx.client.requests import encoding as requests
from disque_tx.client.requests.encoding import Request
from disque_tx.client.resolving import resolve
from disque_tx.client.steps import tracing

_T = TypeVar("_T")
#: The command whose reply holds jobs that would be lost with it until their RETRY is over.
_FETCHING: Final = "GETJOB"


class AsyncSession:
    """Connections to the nodes of one cluster, for one event loop.

    ``patience_s``: how long a request looks for a node that answers, from its first failure on.
    ``connections_max``: how many requests wait at nodes at the same time; others are queued.
    """

    def __init__(
        self,
        seeds: Seeds,
        options: ConnectionOptions,
        *,
        discover: bool,
        patience_s: float,
        connections_max: int,
        random: Random | None = None,
    ) -> None:
        tracing.activate()
        self.now_s = time.monotonic
        self._nodes = Nodes(seeds.addresses, random or Random(), discover)
        self._options = options
        self._patience_s = patience_s
        self._closings = 0
        self._current: Address | None = None
        self._shared: dict[Address, NodeConnection] = {}
        self._idle: defaultdict[Address, list[NodeConnection]] = defaultdict(list)
        self._busy: set[NodeConnection] = set()
        self._opening = asyncio.Lock()
        self._slots = asyncio.Semaphore(connections_max)
        self._tasks: set[asyncio.Task[None]] = set()

    def _search(self) -> AsyncSearch:
        return AsyncSearch(self.now_s, self._patience_s, lambda: self._closings)

    # -- requests ----------------------------------------------------------------------------

    async def request(self, request: Request[_T]) -> _T:
        """Like :meth:`request_located`, but returns only the reply."""
        return (await self.request_located(request))[1]

    async def request_located(self, request: Request[_T]) -> tuple[Address, _T]:
        """Execute a request at any node. Returns the address of the node that answered, and the
        reply.

        :raises CannotConnect: no node answered in time.
        :raises OutcomeUnknown: it may or may not have been executed.
        """
        active = tracing.ACTIVE
        span = None if active is None else active.begin(request.words)
        if span is None:
            return await self._execute(request)
        try:
            found = await self._execute(request)
        except BaseException as error:
            span.failed(error)
            raise
        span.answered(*found)
        return found

    async def _execute(self, request: Request[_T]) -> tuple[Address, _T]:
        """See :meth:`request_located`."""
        search = self._search()
        while True:
            shared = await self._connection_to_use(search)
            try:
                return shared.address, await self._call(shared, request)
            except ConnectionLost as lost:
                if not search.is_over:
                    self._mark_failed(shared.address)
                if lost.sent and not request.repeatable:
                    raise OutcomeUnknown(request.name, lost) from lost
                search.failed(lost.address, lost)
            except (Leaving, Loading) as refused:
                self._mark_failed(shared.address)
                search.failed(refused.address, refused)

    async def request_all_located(self, many: Sequence[Request[_T]]) -> tuple[Address, list[_T]]:
        """Execute requests at one node, in one round trip. They must be repeatable, and must not
        wait; raises what :meth:`request` raises for the first that fails. Returns the address of
        the node, and the replies."""
        search = self._search()
        while True:
            shared = await self._connection_to_use(search)
            sent = shared.send_all(many)
            try:
                answers = [await shared.answer(*pair) for pair in zip(many, sent, strict=True)]
                return shared.address, answers
            except (ConnectionLost, Leaving, Loading) as error:
                if not search.is_over:
                    self._mark_failed(shared.address)
                search.failed(str(shared.address), error)
            finally:
                for future in sent:
                    future.cancel()

    async def request_at(self, address: Address, request: Request[_T]) -> _T:
        """Execute a request at this node, now or not at all.

        :raises ConnectionLost: it cannot be reached, or the reply did not come.
        """
        try:
            return await self._call(await self._shared_connection(address), request)
        except ConnectionLost:
            self._mark_failed(address)
            raise

    async def request_near(self, address: Address, request: Request[_T]) -> _T:
        """Execute a request at this node, or at another one if this cannot be reached."""
        try:
            return await self.request_at(address, request)
        except ConnectionLost as lost:
            if lost.sent and not request.repeatable:
                raise OutcomeUnknown(request.name, lost) from lost
        return await self.request(request)

    async def _call(self, shared: NodeConnection, request: Request[_T]) -> _T:
        if request.wait_s == 0.0:
            return await shared.call(request)
        async with self._slots:
            own = await self._own_connection(shared.address)
            self._busy.add(own)
            future = own.send(request)
            try:
                return await own.answer(request, future)
            except asyncio.CancelledError:
                if request.name == _FETCHING:
                    self._spawn(self._give_back(own, future))
                raise
            finally:
                if future.done():
                    self._put_back(own)
                elif request.name != _FETCHING:
                    future.add_done_callback(lambda _: self._put_back(own))

    async def _give_back(self, own: NodeConnection, future: asyncio.Future[Any]) -> None:
        """Return the jobs that an abandoned GETJOB still brings."""
        own.hang_up()
        await asyncio.wait((future,), timeout=self._options.timeout_s)
        own.close()
        self._busy.discard(own)
        if future.done() and future.exception() is None and future.result():
            jobs = [job.id for job in future.result()]
            await self.request_near(own.address, requests.nack(*jobs))

    def _spawn(self, coroutine: Any) -> None:
        task = asyncio.get_running_loop().create_task(_quietly(coroutine))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # -- nodes -------------------------------------------------------------------------------

    async def address(self) -> Address:
        """The current node; connects to one if there is none."""
        search = self._search()
        return (await self._connection_to_use(search)).address

    async def addresses(self) -> list[Address]:
        """All nodes of the cluster, as the current node lists them now."""
        address, hello = await self.request_located(requests.hello())
        self._nodes.learn(address, hello)
        return self._nodes.addresses()

    async def request_everywhere(self, request: Request[_T]) -> list[_T]:
        """Execute a request at each node; the answers of those that can be asked.

        :raises CannotConnect: there are none.
        """
        answers: list[_T] = []
        tried: dict[str, str] = {}
        for address in await self.addresses():
            try:
                answers.append(await self.request_at(address, request))
            except ClientError as error:
                tried[str(address)] = str(error)
        if not answers:
            raise CannotConnect(tried)
        return answers

    def servers(self) -> Servers:
        """Pipelined connections to the nodes that are known now, none of them open yet."""
        return Servers(self._nodes.addresses(), self._options)

    def follow(self, id_prefix: str) -> None:
        """Prefer the node whose ID begins with this, if it is known and usable."""
        address = self._nodes.with_id_prefix(id_prefix, self.now_s())
        if address is not None:
            self._current = address

    async def set_password(self, password: str) -> None:
        """Use this password from now on, on new connections."""
        await self._close_all()
        self._options = attrs.evolve(self._options, password=password)

    async def close(self) -> None:
        """Close all connections: requests under way fail, and jobs that are on their way to a
        cancelled GETJOB are given back first. New requests open new connections."""
        self._closings += 1
        await self._close_all()

    async def _close_all(self) -> None:
        if self._tasks:
            await asyncio.wait(tuple(self._tasks))
        idle = [connection for group in self._idle.values() for connection in group]
        for connection in (*self._shared.values(), *idle, *self._busy):
            connection.close()
        self._shared.clear()
        self._idle.clear()
        self._busy.clear()

    # -- connections -------------------------------------------------------------------------

    async def _connection_to_use(self, search: AsyncSearch) -> NodeConnection:
        """The shared connection to the current node, or to the best one that can be reached."""
        moved = False
        while True:
            search.check()
            address = self._current
            if address is None:
                try:
                    address, wait_s = await self._pick()
                except NameNotFound as error:
                    search.failed(error.name, error)
                    await asyncio.sleep(LOOKUP_PAUSE_S)
                    continue
                if wait_s > 0:
                    await asyncio.sleep(wait_s)
                    search.check()
            try:
                connection = await self._shared_connection(address)
            except AuthenticationRefused:
                raise
            except ClientError as error:
                if not search.is_over:
                    self._mark_failed(address)
                search.failed(str(address), error)
                continue
            if not moved and self._nodes.has_better(address, self.now_s()):
                moved, self._current = True, None
                continue
            if self._current is None:
                self._current = address
            return connection

    async def _pick(self) -> tuple[Address, float]:
        """See :meth:`Nodes.pick`; names that stand for nodes are looked up first, if it is time."""
        due = self._nodes.due(self.now_s())
        if due:
            self._nodes.resolved(*await asyncio.to_thread(resolve, due))
        return self._nodes.pick(self.now_s())

    async def _shared_connection(self, address: Address) -> NodeConnection:
        connection = self._shared.get(address)
        if connection is not None and connection.usable:
            return connection
        async with self._opening:  # those that wait for it find what the first one has opened
            connection = self._shared.get(address)
            if connection is None or not connection.usable:
                connection = self._shared[address] = await self._open(address)
        return connection

    async def _own_connection(self, address: Address) -> NodeConnection:
        idle = self._idle[address]
        while idle:
            connection = idle.pop()
            if connection.usable:
                return connection
        return await self._open(address)

    async def _open(self, address: Address) -> NodeConnection:
        """A new connection. The node's HELLO updates the list of nodes."""
        closings = self._closings
        connection, hello = await connect(address, self._options)
        if self._closings != closings:
            connection.close(CLOSED)
            raise ConnectionLost(str(address), CLOSED, False)
        self._nodes.learn(address, hello)
        self._nodes.recovered(address)
        return connection

    def _put_back(self, connection: NodeConnection) -> None:
        if connection in self._busy:
            self._busy.discard(connection)
            if connection.usable:
                self._idle[connection.address].append(connection)

    def _mark_failed(self, address: Address) -> None:
        """The node does not answer, leaves or loads; it may still answer what it was sent."""
        self._nodes.failed(address, self.now_s())
        if self._current == address:
            self._current = None
        for connection in self._idle.pop(address, []):
            connection.close()
        shared = self._shared.pop(address, None)
        if shared is not None:
            shared.retire()


async def _quietly(coroutine: Any) -> None:
    """A job that could not be given back comes back by itself when its RETRY is over."""
    try:
        await coroutine
    except ClientError:
        pass
