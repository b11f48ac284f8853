"""The blocking client, and jobs in the hands of a program that uses it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import TypeVar

from disque_tx.client import requests
from disque_tx.client.addresses import Address, seeds
from disque_tx.client.blocking.session import BlockingSession, Surroundings
from disque_tx.client.channels import Steps
from disque_tx.client.commands import ImmediateCommands, Wait, whole_ms
from disque_tx.client.errors import ClientError, ConnectionLost, ScanInterrupted
from disque_tx.client.nodes import Origins
from disque_tx.client.options import TLS, ConnectionOptions, chosen
from disque_tx.client.requests import Name, Scan
from disque_tx.client.values import Delivered, Job, JobDetails

_T = TypeVar("_T")


class Disque(ImmediateCommands):
    """A client of a Disque cluster, this package's or the original's.

    Connects when the first request is made, to any of the nodes, and moves to another one when
    that is lost, leaves, or is silent for too long. May be shared by threads.

    ``addresses``: ``host:port``, ``unix:/path``, a list of such, or
    ``disque://[:password@]host:port[,…]``.
    ``timeout_s``: for connecting, and for a reply beyond what the request itself may wait.
    ``patience_s``: how long a request looks for a node that serves. ``discover``: use the nodes
    that HELLO names too; by default unless there is TLS, whose ports HELLO does not name.
    ``follow``: fetch from the node that makes most of the jobs. ``protocol``: of RESP, 2 or 3.
    ``surroundings``: clock, rest and chance, for tests.

    :raises BadAddress: for something that is no address.
    """

    _session: BlockingSession

    def __init__(
        self,
        addresses: str | Iterable[str] = "127.0.0.1:7711",
        password: str | None = None,
        tls: bool | TLS = False,
        timeout_s: float = 5.0,
        patience_s: float = 20.0,
        discover: bool | None = None,
        follow: bool = True,
        protocol: int = 2,
        surroundings: Surroundings | None = None,
    ) -> None:
        given = seeds(addresses)
        encryption = chosen(tls)
        learning = encryption is None if discover is None else discover
        options = ConnectionOptions(password or given.password, encryption, timeout_s, protocol)
        self._session = BlockingSession(given, options, learning, patience_s, surroundings)
        self._origins = Origins() if follow else None
        self._given = given

    def __repr__(self) -> str:
        return f"<Disque {','.join(map(str, self._given.addresses))}>"

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

    # -- commands that only this client has, or executes in its own way -----------------------

    def get_jobs(
        self, *queues: Name, count: int = 1, timeout_ms: int = 0, no_hang: bool = False
    ) -> list[Job]:
        """GETJOB: up to ``count`` jobs of the queues, the first queue first.

        Waits until there is one, for ``timeout_ms`` at most (0: for ever), or with ``no_hang``
        not at all; an empty list then. If the answer is lost, other jobs are fetched; those that
        were in it come back after their RETRY (and not at all if that is 0).
        """
        return self._fetch(queues, count, timeout_ms, no_hang)[1]

    def _fetch(
        self, queues: tuple[Name, ...], count: int, timeout_ms: int, no_hang: bool
    ) -> tuple[Address, list[Job]]:
        """See :meth:`get_jobs`; also tells the node that delivered."""
        if no_hang:
            return self._counted(*self._session.locate(requests.get_jobs(queues, count)))
        wait = Wait(time.monotonic, timeout_ms)
        wait_ms = wait.next_ms()
        while True:
            request = requests.get_jobs(queues, count, max(1, wait_ms))
            node, jobs = self._session.locate(request)
            wait_ms = wait.next_ms()
            if jobs or not wait_ms:
                return self._counted(node, jobs)

    def _counted(self, node: Address, jobs: list[Job]) -> tuple[Address, list[Job]]:
        maker = self._origins.saw(jobs) if self._origins is not None else None
        if maker is not None:
            self._session.follow(maker)
        return node, jobs

    def show_jobs(self, *job_ids: Name) -> list[JobDetails | None]:
        """SHOW for each, in one round trip to one node."""
        return self._session.request_all([requests.show(job_id) for job_id in job_ids])

    def address(self) -> Address:
        """The node of the moment."""
        return self._session.address()

    def auth(self, password: str) -> None:
        """AUTH: connect anew, now and from now on, with this password.

        :raises AuthenticationRefused: it is not the right one.
        """
        self._session.set_password(password)
        self.ping()

    # -- short forms -------------------------------------------------------------------------

    def dequeue(self, queue: Name, timeout: float | None = None) -> TakenJob | None:
        """Take a job, waiting for it ``timeout`` seconds (``None``: for ever, 0: not at all).

        ``None`` when there was none. Jobs that are done must be acknowledged.
        """
        node, jobs = self._fetch((queue,), 1, whole_ms(timeout), no_hang=timeout == 0)
        return TakenJob(self._session, node, jobs[0]) if jobs else None

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
        """It is done, and not to be delivered any more. Returns whether the node that was told
        knew it as not done before."""
        return self._session.request_near(self.address, requests.ack_jobs(self.id)) > 0

    def nack(self) -> bool:
        """It failed: queue it again now. Returns whether it was."""
        return self._session.request_near(self.address, requests.nack(self.id)) > 0

    def working(self) -> int:
        """It takes longer: put its next delivery off. Returns for how many seconds from now.

        :raises AlreadyAcknowledged: somebody has acknowledged it.
        :raises UnknownJob: it is not known any more.
        :raises TooLate: half of its TTL is over.
        """
        return self._session.request_near(self.address, requests.working(self.id))


class Queue:
    """A queue to iterate over: each step takes a job. What the program does not acknowledge is
    delivered again.

    ``take``: returns the next job, ``None`` when none came in time and the iteration ends.
    """

    def __init__(self, name: str | bytes, take: Callable[[], TakenJob | None]) -> None:
        self.name = name
        self._take = take

    def __iter__(self) -> Iterator[TakenJob]:
        while (job := self._take()) is not None:
            yield job
