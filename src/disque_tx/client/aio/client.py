"""The asyncio client, and the jobs that it delivers.

Any call may be cancelled: the reply to a request that was sent is dropped when it comes. So a job
whose ADDJOB was cancelled may have been added, and stays. A cancelled GETJOB is withdrawn; jobs
that it still brings are given back with NACK.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterable
from random import Random
from types import TracebackType
from typing import TypeVar

from disque_tx.client.addresses import Address, seeds
from disque_tx.client.aio.session import AsyncSession
from disque_tx.client.blocking.servers import Servers
from disque_tx.client.errors import BadJobId
from disque_tx.client.nodes import Origins
from disque_tx.client.options import TLS, ConnectionOptions, tls_options
from disque_tx.client.requests import encoding as requests
from disque_tx.client.requests.encoding import Name, Request
from disque_tx.client.requests.selection import Selection
from disque_tx.client.steps.commands import IN_ORDER_AT_ONCE, AwaitedCommands, Wait, whole_ms
from disque_tx.client.values import Delivered, Job, JobDetails

_T = TypeVar("_T")


class Disque(AwaitedCommands):
    """A client of a Disque cluster, this package's or the original's, for one event loop.

    Connects when the first request is made, to any of the nodes, and moves to another one when
    that is lost, leaves, or does not answer in time. Many requests may be under way at the same
    time; they share connections.

    ``addresses``: ``host:port``, ``unix:/path``, a list of such, or
    ``disque://[:password@]host:port[,…]``.
    ``timeout_s``: for connecting, and for a reply, on top of the time the request itself may wait.
    ``patience_s``: how long a request looks for a node that answers. ``discover``: use the nodes
    listed by HELLO too; the default is yes, but no with TLS, whose ports HELLO does not list.
    ``follow``: fetch from the node that creates most of the jobs. ``connections_max``: how many
    requests wait at nodes at the same time, each on a connection of its own; others are queued.
    ``random``: random numbers, for tests.

    :raises BadAddress: if an address is not valid.
    """

    _session: AsyncSession

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
        seed_nodes = seeds(addresses)
        encryption = tls_options(tls)
        self._session = AsyncSession(
            seed_nodes,
            ConnectionOptions(password or seed_nodes.password, encryption, timeout_s),
            discover=encryption is None if discover is None else discover,
            patience_s=patience_s,
            connections_max=connections_max,
            random=random,
        )
        self._origins = Origins() if follow else None
        self._seed_nodes = seed_nodes

    def __repr__(self) -> str:
        return f"<Disque {','.join(map(str, self._seed_nodes.addresses))}>"

    async def __aenter__(self) -> Disque:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections; requests under way fail. A later request opens new ones."""
        await self._session.close()

    # -- commands that only this client has, or executes differently --------------------------

    async def get_jobs(
        self,
        *queues: Name,
        match: Name | Iterable[Name] = (),
        except_: Name | Iterable[Name] = (),
        count: int = 1,
        timeout_ms: int = 0,
        no_hang: bool = False,
    ) -> list[Job]:
        """GETJOB: up to ``count`` jobs of the queues, the first queue first.

        Waits until there is one, for ``timeout_ms`` at most (0: forever), or with ``no_hang``
        not at all; returns an empty list if there was none. The first GETJOB does not wait, and
        shares the connection of all short requests; only if it finds nothing, another one waits on
        a connection of its own.

        ``match``: one or more patterns; jobs of all queues that match one of them, and none of
        ``except_``, in fair shares, behind those that are named. Originals refuse it.
        """
        chosen = Selection.of(queues, match, except_)
        return (await self._fetch(chosen, count, timeout_ms, no_hang))[1]

    async def _fetch(
        self, chosen: Selection, count: int, timeout_ms: int, no_hang: bool
    ) -> tuple[Address, list[Job]]:
        """See :meth:`get_jobs`; also returns the address of the node that delivered."""
        wait = Wait(time.monotonic, timeout_ms)
        found = await self._session.request_located(chosen.request(count))
        while not found[1] and not no_hang and (wait_ms := wait.next_ms()):
            found = await self._session.request_located(chosen.request(count, wait_ms))
        id_prefix = self._origins.count(found[1]) if self._origins is not None else None
        if id_prefix is not None:
            self._session.follow(id_prefix)
        return found

    async def show_jobs(self, *job_ids: Name) -> list[JobDetails | None]:
        """SHOW for each, in one round trip to one node."""
        return await self._session.request_all([requests.show(job_id) for job_id in job_ids])

    async def address(self) -> Address:
        """The address of the current node."""
        return await self._session.address()

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

    async def auth(self, password: str) -> None:
        """AUTH: use this password from now on, and reconnect with it now.

        :raises AuthenticationRefused: the password is wrong.
        """
        await self._session.set_password(password)
        await self.ping()

    # -- short forms -------------------------------------------------------------------------

    async def take(
        self,
        *queues: Name,
        match: Name | Iterable[Name] = (),
        except_: Name | Iterable[Name] = (),
        count: int = 1,
        timeout_s: float | None = None,
        no_hang: bool = False,
    ) -> list[TakenJob]:
        """Fetch up to ``count`` jobs, the first queue first; an empty list if there was none.

        Waits until there is one, for ``timeout_s`` at most (``None``: forever), or with
        ``no_hang`` not at all. Jobs that are done must be acknowledged. ``match``, ``except_``: see
        :meth:`get_jobs`.
        """
        wait_ms = whole_ms(timeout_s)
        chosen = Selection.of(queues, match, except_)
        node, jobs = await self._fetch(chosen, count, wait_ms, no_hang or timeout_s == 0)
        return [TakenJob(self._session, node, job) for job in jobs]

    async def take_in_order(
        self, *queues: Name, count: int = 1, timeout_s: float | None = None
    ) -> list[TakenJob]:
        """Fetch up to ``count`` jobs, those of the first queue before those of the others: GETJOB
        with COUNT takes one of each queue in turn. Otherwise like :meth:`take`."""
        if len(queues) == 1:
            return await self.take(*queues, count=count, timeout_s=timeout_s)
        jobs = await self.take(*queues, timeout_s=timeout_s)
        while jobs and len(jobs) < count:
            many = [requests.get_jobs(queues)] * min(count - len(jobs), IN_ORDER_AT_ONCE)
            node, answers = await self._session.request_all_located(many)
            jobs += [TakenJob(self._session, node, job) for found in answers for job in found]
            if not answers[-1]:
                break
        return jobs

    async def dequeue(self, queue: Name, timeout: float | None = None) -> TakenJob | None:
        """Fetch a job, waiting for it ``timeout`` seconds (``None``: forever, 0: not at all).

        Returns ``None`` if there was none. Jobs that are done must be acknowledged.
        """
        jobs = await self.take(queue, timeout_s=timeout)
        return jobs[0] if jobs else None

    async def jobs(self, queue: Name, timeout_s: float | None = None) -> AsyncIterator[TakenJob]:
        """The jobs of a queue, for ``async for``; ends when none came for ``timeout_s``."""
        while (job := await self.dequeue(queue, timeout_s)) is not None:
            yield job


class TakenJob(Delivered):
    """See :class:`Delivered`."""

    __slots__ = ("_session",)

    def __init__(self, session: AsyncSession, address: Address, job: Job) -> None:
        super().__init__(address, job)
        self._session = session

    async def ack(self) -> bool:
        """Acknowledge the job: it is done, and not delivered again. Returns whether the node knew
        it and had not acknowledged it before."""
        return await self._near(requests.ack_jobs(self.id)) > 0

    async def fast_ack(self) -> bool:
        """The job is done: delete it, without waiting until all nodes confirm it. Returns whether
        the node had it."""
        return await self._near(requests.fast_ack(self.id)) > 0

    async def nack(self, delay_s: float | None = None, reason: str | None = None) -> bool:
        """The job failed: it is to be delivered again. Returns whether it will be.

        ``delay_s``: after this many seconds, ``None``: as the policy of its queue says, or now.
        ``reason``: why, for its dead letter. A node of the original knows neither: it queues the
        job again now.
        """
        try:
            return await self._near(requests.nack(self.id, delay_s=delay_s, reason=reason)) > 0
        except BadJobId:
            if delay_s is None and reason is None:
                raise
            return await self._near(requests.nack(self.id)) > 0

    async def working(self) -> int:
        """The job takes longer: postpone its next delivery. Returns for how many seconds from now.

        :raises AlreadyAcknowledged: the job has been acknowledged.
        :raises UnknownJob: no node that was asked knows the job.
        :raises TooLate: half of its TTL is over.
        """
        return await self._near(requests.working(self.id))

    async def show(self) -> JobDetails | None:
        """All that the node that delivered the job knows about it; ``None`` if nothing."""
        return await self._near(requests.show(self.id))

    async def _near(self, request: Request[_T]) -> _T:
        return await self._session.request_near(self.address, request)
