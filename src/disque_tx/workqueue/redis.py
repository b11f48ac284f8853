"""The connections of a program to one Redis server."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from twisted.internet.defer import Deferred, DeferredList, maybeDeferred
from twisted.internet.task import deferLater
from twisted.logger import Logger
from twisted.python.failure import Failure

from disque_tx.workqueue import address as addresses
from disque_tx.workqueue.address import RedisAddress
from disque_tx.workqueue.deferreds import deferred
from disque_tx.workqueue.errors import RedisLost, RedisRefused, WorkQueueError
from disque_tx.workqueue.link import Link, connect
from disque_tx.workqueue.scripts import Script

#: How long the server holds a waiting command, so that a dead connection is noticed.
SLICE_S: Final = 30.0
#: Rest between attempts to end a waiting command.
_UNBLOCK_S: Final = 0.05
#: How many connections of waiting commands are kept for the next ones.
_IDLE_MAX: Final = 16


class Redis:
    """All commands share one connection; each waiting one has another, kept for the next.

    Connections are opened when they are needed, and again after a loss. ``reactor``: where they
    live. ``timeout_s``: how long to wait for a connection, and for each reply.
    """

    _log = Logger()

    def __init__(self, address: RedisAddress, reactor: Any, timeout_s: float = 10.0) -> None:
        self.address = address
        self.reactor = reactor
        self._timeout_s = timeout_s
        self._turns: list[Deferred[Link]] = []
        self._shared: Link | None = None
        self._links: set[Link] = set()
        self._idle: list[Link] = []
        self._background: set[Deferred[Any]] = set()
        self._closed = False

    def __repr__(self) -> str:
        return f"<Redis {self.address}/{self.address.database}>"

    @classmethod
    def at(
        cls, url: str, reactor: Any, timeout_s: float = 10.0, password: str | None = None
    ) -> Redis:
        """The server of ``redis://[[user]:password@]host[:port][/db]``. Connects when it is used.

        :raises BadRedisUrl: when that is no address.
        """
        return cls(addresses.parse(url, password), reactor, timeout_s)

    @deferred
    async def execute(self, *words: str | bytes | int | float) -> Any:
        """One command; strings of replies are bytes.

        :raises RedisRefused: when it is refused.
        :raises RedisLost: when the server cannot be reached, or does not answer.
        """
        return await (await self._link()).execute(self._timeout_s, *words)

    @deferred
    async def run(
        self, script: Script, keys: Iterable[str], *arguments: str | bytes | int | float
    ) -> Any:
        """A script, by its name; and by its text if the server does not know it (any more).

        :raises RedisRefused: when it is refused.
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
    async def waiting_link(self) -> Link:
        """A connection for waiting commands; to be given to :meth:`keep` or dropped."""
        while self._idle:
            link = self._idle.pop()
            if link.usable:
                return link
        return await self._connect()

    def keep(self, link: Link) -> None:
        """A connection on which nothing waits any more."""
        if link.usable and len(self._idle) < _IDLE_MAX and not self._closed:
            self._idle.append(link)
        else:
            link.drop()

    @deferred
    async def unblock(self, link: Link, over: Deferred[Any]) -> None:
        """End the command that waits on a connection; ``over`` fires when it has ended.

        The command may not have reached the server yet when this does: so it is repeated.
        """
        while not over.called and link.usable:
            try:
                await self.execute("CLIENT", "UNBLOCK", link.id)
            except WorkQueueError:
                link.drop()
            await deferLater(self.reactor, _UNBLOCK_S)

    def finish(self, work: Deferred[Any]) -> None:
        """Something that nobody waits for; :meth:`close` does. Its errors are logged."""

        def done(result: Any) -> None:
            self._background.discard(work)

        self._background.add(work)
        work.addErrback(
            lambda failure: self._log.warn("After a cancelled lease: {why}", why=failure.value)
        )
        work.addBoth(done)

    @deferred
    async def close(self) -> None:
        """End what goes on in the background, and all connections. Nothing works any more."""
        self._closed = True
        await DeferredList(list(self._background))
        await DeferredList([maybeDeferred(link.drop) for link in self._links])
        self._links.clear()

    async def _link(self) -> Link:
        """The shared connection. Those who come while it is opened get it in their order."""
        if self._shared is not None and self._shared.usable:
            return self._shared
        turn: Deferred[Link] = Deferred()
        self._turns.append(turn)
        if len(self._turns) == 1:
            Deferred.fromCoroutine(self._connect()).addBoth(self._opened)
        return await turn

    def _opened(self, result: Link | Failure) -> None:
        self._shared = None if isinstance(result, Failure) else result
        turns, self._turns = self._turns, []
        for turn in turns:
            turn.callback(result)

    async def _connect(self) -> Link:
        if self._closed and not self._background:
            raise RedisLost(str(self.address), "this program closed its connections", False)
        link = await connect(self.address, self.reactor, self._timeout_s)
        self._links = {link, *(link for link in self._links if link.usable)}
        return link
