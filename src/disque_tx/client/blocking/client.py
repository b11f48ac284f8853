"""The blocking client, and the jobs that it delivers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import TypeVar

from disque_tx.client.addresses import Address, seeds
from disque_tx.client.blocking.servers import Servers
from disque_tx.client.blocking.session import BlockingSession, ClientEnvironment
from disque_tx.client.errors import BadJobId, ClientError, ConnectionLost, ScanInterrupted
from disque_tx.client.nodes import Origins
from disque_tx.client.options import TLS, ConnectionOptions, tls_options
from disque_tx.client.requests import encoding as requests
from disque_tx.client.requests.encoding import Name
from disque_tx.client.requests.scans import Scan
from disque_tx.client.requests.selection import Selection
from disque_tx.client.steps.channels import Steps
from disque_tx.client.steps.commands import IN_ORDER_AT_ONCE, ImmediateCommands, Wait, whole_ms
from disque_tx.client.values import Delivered, Job, JobDetails

_T = TypeVar("_T")


class Disque(ImmediateCommands):
    """A client of a Disque cluster, this package's or the original's.

    Connects when the first request is made, to any of the nodes, and moves to another one when
    that is lost, leaves, or does not answer in time. May be shared by threads.

    ``addresses``: ``host:port``, ``unix:/path``, a list of such, or
    ``disque://[:password@]host:port[,…]``.
    ``timeout_s``: for connecting, and for a reply, on top of the time the request itself may wait.
    ``patience_s``: how long a request looks for a node that answers. ``discover``: use the nodes
    listed by HELLO too; the default is yes, but no with TLS, whose ports HELLO does not list.
    ``follow``: fetch from the node that creates most of the jobs. ``protocol``: version of RESP, 2
    or 3. ``environment``: clock, sleep and random numbers, for tests.

    :raises BadAddress: if an address is not valid.
    """

    _session: BlockingSession

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
        protocol: int = 2,
        environment: ClientEnvironment | None = None,
    ) -> None:
        seed_nodes = seeds(addresses)
        encryption = tls_options(tls)
        discover = encryption is None if discover is None else discover
        options = ConnectionOptions(
            password or seed_nodes.password, encryption, timeout_s, protocol
        )
        self._session = BlockingSession(seed_nodes, options, discover, patience_s, environment)
        self._origins = Origins() if follow else None
        self._seed_nodes = seed_nodes

    def __repr__(self) -> str:
        return f"<Disque {','.join(map(str, self._seed_nodes.addresses))}>"

    def __enter__(self) -> Disque:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections. A later request opens new ones."""
        self._session.close()

    # -- commands that only this client has, or executes differently --------------------------

    def get_jobs(
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
        not at all; returns an empty list if there was none. If the answer is lost, other jobs are
        fetched; those in the lost answer are delivered again after their RETRY (never, if it is 0).

        ``match``: one or more patterns; jobs of all queues that match one of them, and none of
        ``except_``, in fair shares, behind those that are named. Originals refuse it.
        """
        chosen = Selection.of(queues, match, except_)
        return self._fetch(chosen, count, timeout_ms, no_hang)[1]

    def _fetch(
        self, chosen: Selection, count: int, timeout_ms: int, no_hang: bool
    ) -> tuple[Address, list[Job]]:
        """See :meth:`get_jobs`; also returns the address of the node that delivered."""
        if no_hang:
            return self._follow_origin(*self._session.request_located(chosen.request(count)))
        wait = Wait(time.monotonic, timeout_ms)
        wait_ms = wait.next_ms()
        while True:
            request = chosen.request(count, max(1, wait_ms))
            node, jobs = self._session.request_located(request)
            wait_ms = wait.next_ms()
            if jobs or not wait_ms:
                return self._follow_origin(node, jobs)

    def _follow_origin(self, node: Address, jobs: list[Job]) -> tuple[Address, list[Job]]:
        id_prefix = self._origins.count(jobs) if self._origins is not None else None
        if id_prefix is not None:
            self._session.follow(id_prefix)
        return node, jobs

    def show_jobs(self, *job_ids: Name) -> list[JobDetails | None]:
        """SHOW for each, in one round trip to one node."""
        return self._session.request_all([requests.show(job_id) for job_id in job_ids])

    def address(self) -> Address:
        """The address of the current node."""
        return self._session.address()

    def auth(self, password: str) -> None:
        """AUTH: use this password from now on, and reconnect with it now.

        :raises AuthenticationRefused: the password is wrong.
        """
        self._session.set_password(password)
        self.ping()

    # -- short forms -------------------------------------------------------------------------

    def take(
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
        node, jobs = self._fetch(chosen, count, wait_ms, no_hang or timeout_s == 0)
        return [TakenJob(self._session, node, job) for job in jobs]

    def take_in_order(
        self, *queues: Name, count: int = 1, timeout_s: float | None = None
    ) -> list[TakenJob]:
        """Fetch up to ``count`` jobs, those of the first queue before those of the others: GETJOB
        with COUNT takes one of each queue in turn. Otherwise like :meth:`take`."""
        if len(queues) == 1:
            return self.take(*queues, count=count, timeout_s=timeout_s)
        jobs = self.take(*queues, timeout_s=timeout_s)
        while jobs and len(jobs) < count:
            many = [requests.get_jobs(queues)] * min(count - len(jobs), IN_ORDER_AT_ONCE)
            node, answers = self._session.request_all_located(many)
            jobs += [TakenJob(self._session, node, job) for found in answers for job in found]
            if not answers[-1]:
                break
        return jobs

    def dequeue(self, queue: Name, timeout: float | None = None) -> TakenJob | None:
        """Fetch a job, waiting for it ``timeout`` seconds (``None``: forever, 0: not at all).

        Returns ``None`` if there was none. Jobs that are done must be acknowledged.
        """
        jobs = self.take(queue, timeout_s=timeout)
        return jobs[0] if jobs else None

    def servers(self) -> Servers:
        """Pipelined connections of one's own to the same nodes, none of them open yet."""
        return self._session.servers()

    def queue(self, name: Name, timeout: float | None = None) -> Queue:
        """The jobs of a queue, to iterate over; ends when none came for ``timeout`` seconds."""
        return Queue(name, lambda: self.dequeue(name, timeout))

    # -- how commands are executed -----------------------------------------------------------

    def _perform_steps(self, steps: Steps[_T]) -> _T:
        try:
            step = next(steps)
            while True:
                try:
                    answer = step(self._session)
                except ClientError as error:
                    step = steps.throw(error)
                else:
                    step = steps.send(answer)
        except StopIteration as end:
            result: _T = end.value
            return result

    def _pages(self, scan: Scan[_T]) -> Iterator[_T]:
        address = self._session.address()
        cursor = 0
        while True:
            try:
                cursor, items = self._session.request_at(address, scan.page(cursor))
            except ConnectionLost as lost:
                raise ScanInterrupted(scan.command, lost) from lost
            yield from items
            if not cursor:
                return


class TakenJob(Delivered):
    """See :class:`Delivered`."""

    __slots__ = ("_session",)

    def __init__(self, session: BlockingSession, address: Address, job: Job) -> None:
        super().__init__(address, job)
        self._session = session

    def ack(self) -> bool:
        """Acknowledge the job: it is done, and not delivered again. Returns whether the node knew
        it and had not acknowledged it before."""
        return self._session.request_near(self.address, requests.ack_jobs(self.id)) > 0

    def nack(self, delay_s: float | None = None, reason: str | None = None) -> bool:
        """The job failed: it is to be delivered again. Returns whether it will be.

        ``delay_s``: after this many seconds, ``None``: as the policy of its queue says, or now.
        ``reason``: why, for its dead letter. A node of the original knows neither: it queues the
        job again now.
        """
        near = self._session.request_near
        try:
            return near(self.address, requests.nack(self.id, delay_s=delay_s, reason=reason)) > 0
        except BadJobId:
            if delay_s is None and reason is None:
                raise
            return near(self.address, requests.nack(self.id)) > 0

    def working(self) -> int:
        """The job takes longer: postpone its next delivery. Returns for how many seconds from now.

        :raises AlreadyAcknowledged: the job has been acknowledged.
        :raises UnknownJob: no node that was asked knows the job.
        :raises TooLate: half of its TTL is over.
        """
        return self._session.request_near(self.address, requests.working(self.id))


class Queue:
    """A queue to iterate over: each step fetches a job. Jobs that are not acknowledged are
    delivered again.

    ``take``: returns the next job, or ``None`` to end the iteration when none came in time.
    """

    def __init__(self, name: str | bytes, take: Callable[[], TakenJob | None]) -> None:
        self.name = name
        self._take = take

    def __iter__(self) -> Iterator[TakenJob]:
        while (job := self._take()) is not None:
            yield job
