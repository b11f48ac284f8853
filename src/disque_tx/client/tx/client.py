"""The client for programs that run on a Twisted reactor, and jobs in their hands."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from random import Random
from typing import Any, TypeVar

from twisted.internet.defer import Deferred, FirstError, gatherResults
from twisted.python.failure import Failure
from twisted.python.reflect import namedAny

from disque_tx.client import requests
from disque_tx.client.addresses import Address, seeds
from disque_tx.client.commands import whole_ms
from disque_tx.client.options import TLS, ConnectionOptions, chosen
from disque_tx.client.requests import Name, Request
from disque_tx.client.tx.commands import TwistedCommands
from disque_tx.client.tx.session import TwistedSession
from disque_tx.client.values import Delivered, Job, JobDetails

_T = TypeVar("_T")


class DisqueClient(TwistedCommands):
    """A client of a Disque cluster, this package's or the original's.

    Connects when the first request is made, to any of the nodes, and moves to another one when
    that is lost, leaves, or is silent for too long. Many requests may be under way at the same
    time; they share connections.

    ``addresses``: ``host:port``, ``unix:/path``, a list of such, or
    ``disque://[:password@]host:port[,…]``.
    ``reactor``: the global one by default. ``timeout_s``: for connecting, and for a reply beyond
    what the request itself may wait. ``patience_s``: how long a request looks for a node that
    serves. ``discover``: use the nodes that HELLO names too; by default unless there is TLS, whose
    ports HELLO does not name. ``follow``: fetch from the node that makes most of the jobs.
    ``connections_max``: how many requests wait for jobs at nodes at the same time, each on a
    connection of its own; others wait in line. ``random``: chance, for tests.

    :raises BadAddress: for something that is no address.
    """

    def __init__(
        self,
        addresses: str | Iterable[str] = "127.0.0.1:7711",
        password: str | None = None,
        tls: bool | TLS = False,
        reactor: Any = None,
        timeout_s: float = 5.0,
        patience_s: float = 20.0,
        discover: bool | None = None,
        follow: bool = True,
        connections_max: int = 100,
        random: Random | None = None,
    ) -> None:
        given = seeds(addresses)
        encryption = chosen(tls)
        session = TwistedSession(
            given,
            ConnectionOptions(password or given.password, encryption, timeout_s),
            _global_reactor() if reactor is None else reactor,
            encryption is None if discover is None else discover,
            patience_s,
            connections_max,
            random or Random(),
        )
        super().__init__(session, follow)
        self._given = given

    def __repr__(self) -> str:
        return f"<DisqueClient {','.join(map(str, self._given.addresses))}>"

    def close(self) -> Deferred[None]:
        """Close the connections; requests under way fail. Fires when all are closed. A later
        request opens new ones."""
        return self._session.close()

    def set_name(self, name: str) -> None:
        """Name the connections, as CLIENT LIST shows them. A name has no spaces."""
        self._session.set_name(name)

    # -- short forms -------------------------------------------------------------------------

    def take(
        self,
        *queues: Name,
        count: int = 1,
        timeout_s: float | None = None,
        no_hang: bool = False,
    ) -> Deferred[list[TakenJob]]:
        """Take up to ``count`` jobs, the first queue first; an empty list when there was none.

        Waits until there is one, for ``timeout_s`` at most (``None``: for ever), or with
        ``no_hang`` not at all. Jobs that are done must be acknowledged. When this is cancelled, no
        job is taken: those that were on their way are given back.
        """
        found = self._fetch(queues, count, whole_ms(timeout_s), no_hang or timeout_s == 0)
        return found.addCallback(self._taken)

    def dequeue(self, queue: Name, timeout: float | None = None) -> Deferred[TakenJob | None]:
        """Take a job, waiting for it ``timeout`` seconds (``None``: for ever, 0: not at all).

        Fires with ``None`` when there was none.
        """
        return self.take(queue, timeout_s=timeout).addCallback(_first)

    async def jobs(self, queue: Name, timeout_s: float | None = None) -> AsyncIterator[TakenJob]:
        """The jobs of a queue, for ``async for``; ends when none came for ``timeout_s``."""
        while (job := await self.dequeue(queue, timeout_s)) is not None:
            yield job

    def ack_taken(self, jobs: Sequence[TakenJob]) -> Deferred[int]:
        """Acknowledge jobs, with one request to each node that delivered some. Fires with how many
        were not acknowledged before."""
        return self._near(jobs, requests.ack_jobs)

    def nack_taken(self, jobs: Sequence[TakenJob]) -> Deferred[int]:
        """Give jobs back, with one request to each node that delivered some. Fires with how many
        were queued again."""
        return self._near(jobs, requests.nack)

    def _near(
        self, jobs: Sequence[TakenJob], request: Callable[..., Request[int]]
    ) -> Deferred[int]:
        """One request per node; all are sent, and if some fail, the first failure is told."""
        groups: defaultdict[Address, list[str]] = defaultdict(list)
        for job in jobs:
            groups[job.address].append(job.id)
        near = self._session.request_near
        sent = [near(address, request(*ids)) for address, ids in groups.items()]
        if len(sent) == 1:
            return sent[0]
        return gatherResults(sent, consumeErrors=True).addCallbacks(sum, _unwrapped)

    def _taken(self, found: tuple[Address, list[Job]]) -> list[TakenJob]:
        address, jobs = found
        return [TakenJob(self._session, address, job) for job in jobs]


class TakenJob(Delivered):
    """See :class:`Delivered`."""

    __slots__ = ("_session",)

    def __init__(self, session: TwistedSession, address: Address, job: Job) -> None:
        super().__init__(address, job)
        self._session = session

    def ack(self) -> Deferred[bool]:
        """It is done, and not to be delivered any more. Fires with whether the node that was told
        knew it as not done before."""
        return self._near(requests.ack_jobs(self.id)).addCallback(bool)

    def fast_ack(self) -> Deferred[bool]:
        """It is done: delete it, without making sure. Fires with whether the node had it."""
        return self._near(requests.fast_ack(self.id)).addCallback(bool)

    def nack(self) -> Deferred[bool]:
        """It failed: queue it again now. Fires with whether it was."""
        return self._near(requests.nack(self.id)).addCallback(bool)

    def working(self) -> Deferred[int]:
        """It takes longer: put its next delivery off. Fires with for how many seconds from now.

        Fails with :class:`AlreadyAcknowledged` when somebody has acknowledged it, with
        :class:`UnknownJob` when it is not known any more, and with :class:`TooLate` when half of
        its TTL is over.
        """
        return self._near(requests.working(self.id))

    def show(self) -> Deferred[JobDetails | None]:
        """All that the node that delivered it knows of it; ``None`` if nothing."""
        return self._near(requests.show(self.id))

    def _near(self, request: Request[_T]) -> Deferred[_T]:
        return self._session.request_near(self.address, request)


def _first(jobs: list[TakenJob]) -> TakenJob | None:
    return jobs[0] if jobs else None


def _unwrapped(failure: Failure) -> Failure:
    """The failure itself, not which of several it was."""
    error = failure.value
    return error.subFailure if isinstance(error, FirstError) else failure


def _global_reactor() -> Any:
    """The reactor of the process. It is looked up here and not imported above, because importing
    it installs one, and a program may want another kind or give its own."""
    return namedAny("twisted.internet.reactor")
