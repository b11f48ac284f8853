"""The client for programs that run on a Twisted reactor, and the jobs that it delivers.

Any Deferred may be cancelled: a request that was not sent is not sent then; the reply to one that
was is dropped when it comes. So a job whose ADDJOB was cancelled may have been added, and stays.
Jobs in the reply to a cancelled GETJOB are given back with NACK.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from functools import partial
from random import Random
from typing import Any, TypeVar

from twisted.internet.defer import Deferred, FirstError, gatherResults
from twisted.python.failure import Failure
from twisted.python.reflect import namedAny

from disque_tx.client.addresses import Address, seeds
from disque_tx.client.errors import BadJobId
from disque_tx.client.nodes import Origins
from disque_tx.client.options import TLS, ConnectionOptions, tls_options
from disque_tx.client.requests import encoding as requests
from disque_tx.client.requests.encoding import Name, Request
from disque_tx.client.requests.selection import Selection
from disque_tx.client.steps.channels import Steps
from disque_tx.client.steps.commands import DeferredCommands, Wait, whole_ms
from disque_tx.client.tx.session import TwistedSession
from disque_tx.client.values import Delivered, Job, JobDetails

_T = TypeVar("_T")


class TwistedCommands(DeferredCommands):
    """The commands of Disque, executed by a session.

    ``follow``: whether to move to the node that creates most of the delivered jobs.
    """

    _session: TwistedSession

    def __init__(self, session: TwistedSession, follow: bool = True) -> None:
        self._session = session
        self._origins = Origins() if follow else None

    def _perform_steps(self, steps: Steps[_T]) -> Deferred[_T]:
        return Deferred.fromCoroutine(self._stepped(steps))

    def get_jobs(
        self,
        *queues: Name,
        match: Name | Iterable[Name] = (),
        except_: Name | Iterable[Name] = (),
        count: int = 1,
        timeout_ms: int = 0,
        no_hang: bool = False,
    ) -> Deferred[list[Job]]:
        """GETJOB: up to ``count`` jobs of the queues, the first queue first.

        Waits until there is one, for ``timeout_ms`` at most (0: forever), or with ``no_hang``
        not at all; an empty list if there was none. The first GETJOB does not wait, and shares the
        connection of all short requests; only if it finds nothing, another one waits on a
        connection of its own.

        ``match``: one or more patterns; jobs of all queues that match one of them, and none of
        ``except_``, in fair shares, behind those that are named. Originals refuse it.
        """
        chosen = Selection.of(queues, match, except_)
        return self._fetch(chosen, count, timeout_ms, no_hang).addCallback(_value)

    def _fetch(
        self, chosen: Selection, count: int, timeout_ms: int, no_hang: bool
    ) -> Deferred[tuple[Address, list[Job]]]:
        """See :meth:`get_jobs`; also returns the address of the node that delivered."""
        found = self._session.request_located(chosen.request(count))
        if not no_hang:
            wait = Wait(self._session.now_s, timeout_ms)
            found.addCallback(self._looked, chosen, count, wait)
        return found if self._origins is None else found.addCallback(self._counted, self._origins)

    def _looked(
        self,
        found: tuple[Address, list[Job]],
        chosen: Selection,
        count: int,
        wait: Wait,
    ) -> tuple[Address, list[Job]] | Deferred[tuple[Address, list[Job]]]:
        if found[1]:
            return found
        return Deferred.fromCoroutine(self._waited(found, chosen, count, wait))

    async def _waited(
        self,
        found: tuple[Address, list[Job]],
        chosen: Selection,
        count: int,
        wait: Wait,
    ) -> tuple[Address, list[Job]]:
        while not found[1] and (wait_ms := wait.next_ms()):
            found = await self._session.request_located(chosen.request(count, wait_ms))
        return found

    def _counted(
        self, found: tuple[Address, list[Job]], origins: Origins
    ) -> tuple[Address, list[Job]]:
        maker = origins.count(found[1])
        if maker is not None:
            self._session.follow(maker)
        return found

    def address(self) -> Deferred[Address]:
        """The address of the current node."""
        return self._session.request_located(requests.hello()).addCallback(_address)

    def auth(self, password: str) -> Deferred[None]:
        """AUTH: use this password from now on, and reconnect with it now.

        Fails with :class:`AuthenticationRefused` when the password is wrong.
        """
        self._session.set_password(password)
        return self.ping().addCallback(_nothing)


class DisqueClient(TwistedCommands):
    """A client of a Disque cluster, this package's or the original's.

    Connects when the first request is made, to any of the nodes, and moves to another one when
    that is lost, leaves, or does not answer in time. Many requests may be under way at the same
    time; they share connections.

    ``addresses``: ``host:port``, ``unix:/path``, a list of such, or
    ``disque://[:password@]host:port[,…]``.
    ``reactor``: the global one by default. ``timeout_s``: for connecting, and for a reply, on top
    of the time the request itself may wait. ``patience_s``: how long a request looks for a node
    that answers. ``discover``: use the nodes listed by HELLO too; the default is yes, but no with
    TLS, whose ports HELLO does not list. ``follow``: fetch from the node that creates most of the
    jobs. ``connections_max``: how many requests wait for jobs at nodes at the same time, each on a
    connection of its own; others are queued. ``random``: random numbers, for tests.

    :raises BadAddress: if an address is not valid.
    """

    def __init__(
        self,
        addresses: str | Iterable[str] = "127.0.0.1:7711",
        password: str | None = None,
        *,
        tls: bool | TLS = False,
        reactor: Any = None,
        timeout_s: float = 5.0,
        patience_s: float = 20.0,
        discover: bool | None = None,
        follow: bool = True,
        connections_max: int = 100,
        random: Random | None = None,
    ) -> None:
        seed_nodes = seeds(addresses)
        encryption = tls_options(tls)
        session = TwistedSession(
            seed_nodes,
            ConnectionOptions(password or seed_nodes.password, encryption, timeout_s),
            _global_reactor() if reactor is None else reactor,
            discover=encryption is None if discover is None else discover,
            patience_s=patience_s,
            connections_max=connections_max,
            random=random or Random(),
        )
        super().__init__(session, follow)
        self._seed_nodes = seed_nodes

    def __repr__(self) -> str:
        return f"<DisqueClient {','.join(map(str, self._seed_nodes.addresses))}>"

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
        match: Name | Iterable[Name] = (),
        except_: Name | Iterable[Name] = (),
        count: int = 1,
        timeout_s: float | None = None,
        no_hang: bool = False,
    ) -> Deferred[list[TakenJob]]:
        """Fetch up to ``count`` jobs, the first queue first; an empty list if there was none.

        Waits until there is one, for ``timeout_s`` at most (``None``: forever), or with
        ``no_hang`` not at all. Jobs that are done must be acknowledged. When the Deferred is
        cancelled, jobs that still arrive are given back with NACK. ``match``, ``except_``: see
        :meth:`get_jobs`.
        """
        chosen = Selection.of(queues, match, except_)
        delivery = self._fetch(chosen, count, whole_ms(timeout_s), no_hang or timeout_s == 0)
        return delivery.addCallback(self._taken)

    def dequeue(self, queue: Name, timeout: float | None = None) -> Deferred[TakenJob | None]:
        """Fetch a job, waiting for it ``timeout`` seconds (``None``: forever, 0: not at all).

        Fires with ``None`` if there was none.
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

    def nack_taken(
        self, jobs: Sequence[TakenJob], delay_s: float | None = None, reason: str | None = None
    ) -> Deferred[int]:
        """Give jobs back, with one request to each node that delivered some. Fires with how many
        will be delivered again. ``delay_s``, ``reason``: see :meth:`TakenJob.nack`."""
        nack = partial(requests.nack, delay_s=delay_s, reason=reason)
        given_back = self._near(jobs, nack)
        if delay_s is not None or reason is not None:
            given_back.addErrback(self._nack_plainly, jobs)
        return given_back

    def _nack_plainly(self, failure: Failure, jobs: Sequence[TakenJob]) -> Deferred[int]:
        """A node of the original takes the options for IDs."""
        failure.trap(BadJobId)
        return self._near(jobs, requests.nack)

    def _near(
        self, jobs: Sequence[TakenJob], request: Callable[..., Request[int]]
    ) -> Deferred[int]:
        """Send one request to each node; all are sent, and if some fail, the first failure is
        returned."""
        groups: defaultdict[Address, list[str]] = defaultdict(list)
        for job in jobs:
            groups[job.address].append(job.id)
        near = self._session.request_near
        sent = [near(address, request(*ids)) for address, ids in groups.items()]
        if len(sent) == 1:
            return sent[0]
        return gatherResults(sent, consumeErrors=True).addCallbacks(sum, _unwrapped)

    def _taken(self, delivery: tuple[Address, list[Job]]) -> list[TakenJob]:
        address, jobs = delivery
        return [TakenJob(self._session, address, job) for job in jobs]


class TakenJob(Delivered):
    """See :class:`Delivered`."""

    __slots__ = ("_session",)

    def __init__(self, session: TwistedSession, address: Address, job: Job) -> None:
        super().__init__(address, job)
        self._session = session

    def ack(self) -> Deferred[bool]:
        """Acknowledge the job: it is done, and not delivered again. Fires with whether the node
        knew it and had not acknowledged it before."""
        return self._near(requests.ack_jobs(self.id)).addCallback(bool)

    def fast_ack(self) -> Deferred[bool]:
        """The job is done: delete it, without waiting until all nodes confirm it. Fires with
        whether the node had it."""
        return self._near(requests.fast_ack(self.id)).addCallback(bool)

    def nack(self, delay_s: float | None = None, reason: str | None = None) -> Deferred[bool]:
        """The job failed: it is to be delivered again. Fires with whether it will be.

        ``delay_s``: after this many seconds, ``None``: as the policy of its queue says, or now.
        ``reason``: why, for its dead letter. A node of the original knows neither: it queues the
        job again now.
        """
        given_back = self._near(requests.nack(self.id, delay_s=delay_s, reason=reason))
        if delay_s is not None or reason is not None:
            given_back.addErrback(self._nack_plainly)
        return given_back.addCallback(bool)

    def _nack_plainly(self, failure: Failure) -> Deferred[int]:
        failure.trap(BadJobId)
        return self._near(requests.nack(self.id))

    def working(self) -> Deferred[int]:
        """The job takes longer: postpone its next delivery. Fires with the number of seconds from
        now.

        Fails with :class:`AlreadyAcknowledged` when the job has been acknowledged, with
        :class:`UnknownJob` when no node that was asked knows it, and with :class:`TooLate` when
        half of its TTL is over.
        """
        return self._near(requests.working(self.id))

    def show(self) -> Deferred[JobDetails | None]:
        """All that the node that delivered the job knows about it; ``None`` if nothing."""
        return self._near(requests.show(self.id))

    def _near(self, request: Request[_T]) -> Deferred[_T]:
        return self._session.request_near(self.address, request)


def _address(found: tuple[Address, Any]) -> Address:
    return found[0]


def _value(found: tuple[Address, _T]) -> _T:
    return found[1]


def _nothing(_: object) -> None:
    """Replace a result that is not needed by ``None``."""


def _first(jobs: list[TakenJob]) -> TakenJob | None:
    return jobs[0] if jobs else None


def _unwrapped(failure: Failure) -> Failure:
    """The failure inside a :class:`FirstError`."""
    error = failure.value
    return error.subFailure if isinstance(error, FirstError) else failure


def _global_reactor() -> Any:
    """The reactor of the process. It is looked up here and not imported above, because importing
    it installs one, and a program may want another kind or pass its own."""
    return namedAny("twisted.internet.reactor")
