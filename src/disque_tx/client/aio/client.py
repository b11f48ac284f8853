"""The asyncio client, and the jobs that it delivers.

Any call may be cancelled: the reply to a request that was sent is dropped when it comes. So a job
whose ADDJOB was cancelled may have been added, and stays. A cancelled GETJOB is withdrawn; jobs
that it still brings are given back with NACK.
"""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from types import TracebackType
from typing import TypeVar

from disque_tx.client.aio.session import AsyncSession
from disque_tx.client.blocking.servers import Servers
from disque_tx.client.options import TLS, Target
from disque_tx.client.requests.encoding import Request
from disque_tx.client.steps.commands import Commands
from disque_tx.client.steps.delivered import Delivered
from disque_tx.client.steps.fetching import Batches, Iteration
from disque_tx.client.steps.methods import AwaitedMethods

_T = TypeVar("_T")


class TakenJob(AwaitedMethods, Delivered):
    """A job that the asyncio client delivered; see :class:`Delivered`."""

    __slots__ = ()


class Disque(AwaitedMethods, Batches[TakenJob], Iteration[TakenJob], Commands[TakenJob]):
    """A client of a Disque cluster, this package's or the original's, for one event loop.

    Connects when the first request is made, to any of the nodes, and moves to another one when
    that is lost, leaves, or does not answer in time. Many requests may be under way at the same
    time; they share connections.

    ``addresses``: ``host:port``, ``unix:/path``, a list of such, or
    ``disque://[:password@]host:port[,…]``; or the name of a cluster, whose addresses are looked up
    when a node is chosen: ``disque+dns://[:password@]name:port``, ``disque+srv://[:password@]name``.
    ``timeout_s``: for connecting, and for a reply, on top of the time the request itself may wait.
    ``patience_s``: how long a request looks for a node that answers. ``discover``: use the nodes
    listed by HELLO too; the default is yes, but no with TLS, whose ports HELLO does not list.
    ``follow``: fetch from the node that creates most of the jobs. ``connections_max``: how many
    requests wait at nodes at the same time, each on a connection of its own; others are queued.
    ``random``: random numbers, for tests.

    :raises BadAddress: if an address is not valid.
    """

    _session: AsyncSession
    _delivered = TakenJob

    def __init__(
        self,
        addresses: str | Iterable[str] = "127.0.0.1:7711",
        password: str | None = None,
        *,
        tls: bool | TLS = False,
        timeout_s: float = 5.0,
        patience_s: float = 20.0,
        discover: bool | None = None,
        follow: bool = True,
        connections_max: int = 100,
        random: Random | None = None,
    ) -> None:
        target = Target.of(addresses, password, tls, timeout_s, discover)
        session = AsyncSession(
            target.seeds,
            target.options,
            discover=target.discover,
            patience_s=patience_s,
            connections_max=connections_max,
            random=random,
        )
        super().__init__(session, target.seeds, follow)

    async def __aenter__(self) -> Disque:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def ask_all(self, request: Request[_T]) -> list[_T]:
        """The answers to a request of all nodes that can be asked, each of which knows only its own
        part.

        :raises CannotConnect: there are none.
        """
        return await self._session.request_everywhere(request)

    def servers(self) -> Servers:
        """Pipelined connections that block, to the nodes that are known now, for a thread; none of
        them is open yet."""
        return self._session.servers()
