"""The connections of a program to one Redis server."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from twisted.internet.defer import Deferred, DeferredList, maybeDeferred
from twisted.internet.task import deferLater
from twisted.logger import Logger
from twisted.python.failure import Failure

from disque_tx.workqueue.connection import RedisAddress, RedisConnection, connect, parse
from disque_tx.workqueue.deferreds import deferred
from disque_tx.workqueue.errors import RedisLost, RedisRefused, WorkQueueError
from disque_tx.workqueue.scripts import Script

#: How long one command blocks at the server at most, so that a dead connection is detected.
SLICE_S: Final = 30.0
#: Time between attempts to end a blocking command.
_UNBLOCK_S: Final = 0.05
#: How many idle connections are kept for blocking commands.
_IDLE_MAX: Final = 16


class Redis:
    """All commands share one connection; each blocking one has a connection of its own, which is
    kept for the next one.

    Connections are opened when they are needed, and again after a loss. ``timeout_s``: how long to
    wait for a connection, and for each reply.
    """

    _log = Logger()

    def __init__(self, address: RedisAddress, reactor: Any, timeout_s: float = 10.0) -> None:
        self.address = address
        self.reactor = reactor
        self._timeout_s = timeout_s
        self._waiters: list[Deferred[RedisConnection]] = []
        self._shared: RedisConnection | None = None
        self._connections: set[RedisConnection] = set()
        self._idle: list[RedisConnection] = []
        self._background: set[Deferred[Any]] = set()
        self._closed = False

    def __repr__(self) -> str:
        return f"<Redis {self.address}/{self.address.database}>"

    @classmethod
    def at(
        cls, url: str, reactor: Any, timeout_s: float = 10.0, password: str | None = None
    ) -> Redis:
        """The server at ``redis://[[user]:password@]host[:port][/db]``. Connects on first use.

        :raises BadRedisUrl: when the URL is not valid.
        """
        return cls(parse(url, password), reactor, timeout_s)

    @deferred
    async def execute(self, *words: str | bytes | int | float) -> Any:
        """Execute a command; strings in the reply are bytes.

        :raises RedisRefused: when the reply is an error.
        :raises RedisLost: when the server cannot be reached, or does not answer.
        """
        return await (await self._shared_connection()).execute(self._timeout_s, *words)

    @deferred
    async def run(
        self, script: Script, keys: Iterable[str], *arguments: str | bytes | int | float
    ) -> Any:
        """Execute a script, by its hash; or by its source if the server does not have it (any
        more).

        :raises RedisRefused: when the reply is an error.
        :raises RedisLost: when the server cannot be reached, or does not answer.
        """
        names = list(keys)
        words = (len(names), *names, *arguments)
        try:
            return await self.execute("EVALSHA", script.sha, *words)
        except RedisRefused as error:
            if error.code != "NOSCRIPT":
                raise
        return await self.execute("EVAL", script.source, *words)

    @deferred
    async def blocking_connection(self) -> RedisConnection:
        """A connection for one blocking command; pass it to :meth:`put_back` or close it."""
        while self._idle:
            connection = self._idle.pop()
            if connection.usable:
                return connection
        return await self._connect()

    def put_back(self, connection: RedisConnection) -> None:
        """Keep a connection whose blocking command has ended, for the next one."""
        if connection.usable and len(self._idle) < _IDLE_MAX and not self._closed:
            self._idle.append(connection)
        else:
            connection.close_now()

    @deferred
    async def unblock(self, connection: RedisConnection, over: Deferred[Any]) -> None:
        """End the blocking command of a connection; ``over`` fires when the command has ended.

        CLIENT UNBLOCK is repeated, because it may reach the server before the blocking command.
        """
        while not over.called and connection.usable:
            try:
                await self.execute("CLIENT", "UNBLOCK", connection.id)
            except WorkQueueError:
                connection.close_now()
            await deferLater(self.reactor, _UNBLOCK_S)

    def finish(self, work: Deferred[Any]) -> None:
        """Run work in the background: only :meth:`close` waits for it, and errors are logged."""

        def done(result: Any) -> None:
            self._background.discard(work)

        self._background.add(work)
        work.addErrback(
            lambda failure: self._log.warn("After a cancelled lease: {why}", why=failure.value)
        )
        work.addBoth(done)

    @deferred
    async def close(self) -> None:
        """Wait for the background work, and close all connections. No command works after this."""
        self._closed = True
        await DeferredList(list(self._background))
        await DeferredList(
            [maybeDeferred(connection.close_now) for connection in self._connections]
        )
        self._connections.clear()

    async def _shared_connection(self) -> RedisConnection:
        """The shared connection. Callers that wait while it is opened get it in order."""
        if self._shared is not None and self._shared.usable:
            return self._shared
        waiter: Deferred[RedisConnection] = Deferred()
        self._waiters.append(waiter)
        if len(self._waiters) == 1:
            Deferred.fromCoroutine(self._connect()).addBoth(self._opened)
        return await waiter

    def _opened(self, result: RedisConnection | Failure) -> None:
        self._shared = None if isinstance(result, Failure) else result
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            waiter.callback(result)

    async def _connect(self) -> RedisConnection:
        if self._closed and not self._background:
            raise RedisLost(str(self.address), "this program closed its connections", False)
        connection = await connect(self.address, self.reactor, self._timeout_s)
        self._connections = {
            connection,
            *(connection for connection in self._connections if connection.usable),
        }
        return connection
