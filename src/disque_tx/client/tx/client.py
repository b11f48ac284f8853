"""The client for programs that run on a Twisted reactor, and the jobs that it delivers.

Any Deferred may be cancelled: a request that was not sent is not sent then; the reply to one that
was is dropped when it comes. So a job whose ADDJOB was cancelled may have been added, and stays.
Jobs in the reply to a cancelled GETJOB are given back with NACK.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from random import Random
from typing import Any, TypeVar

from twisted.internet.defer import Deferred, FirstError, gatherResults, succeed
from twisted.python.failure import Failure
from twisted.python.reflect import namedAny

from disque_tx.client.addresses import Address
from disque_tx.client.errors import BadJobId, ClientError
from disque_tx.client.options import TLS, Target
from disque_tx.client.requests import encoding as requests
from disque_tx.client.requests.encoding import Request
from disque_tx.client.steps.commands import Commands
from disque_tx.client.steps.delivered import Delivered
from disque_tx.client.steps.fetching import Iteration
from disque_tx.client.steps.methods import DeferredMethods
from disque_tx.client.steps.single import Step, Steps
from disque_tx.client.tx.session import TwistedSession

_T = TypeVar("_T")


class TwistedMethods(DeferredMethods):
    """Performs operations. The first request of each is made without a coroutine: most operations
    have no other, and take half as long then."""

    __slots__ = ()

    def _perform(self, steps: Steps[_T]) -> Deferred[_T]:
        try:
            step = next(steps)
        except StopIteration as end:
            return succeed(end.value)
        found: Deferred[Any] = step(self._session)
        arguments = (steps,)
        return found.addCallbacks(
            self._answered, self._failed, callbackArgs=arguments, errbackArgs=arguments
        )

    def _answered(self, answer: Any, steps: Steps[_T]) -> _T | Deferred[_T]:
        return self._resumed(steps, steps.send, answer)

    def _failed(self, failure: Failure, steps: Steps[_T]) -> _T | Deferred[_T]:
        failure.trap(ClientError)
        return self._resumed(steps, steps.throw, failure.value)

    def _resumed(
        self, steps: Steps[_T], resume: Callable[[Any], Step], answer: Any
    ) -> _T | Deferred[_T]:
        try:
            step = resume(answer)
        except StopIteration as end:
            result: _T = end.value
            return result
        return Deferred.fromCoroutine(self._finish(steps, step))


class TakenJob(TwistedMethods, Delivered):
    """A job that the Twisted client delivered; see :class:`Delivered`."""

    __slots__ = ()


class DisqueClient(TwistedMethods, Iteration[TakenJob], Commands[TakenJob]):
    """A client of a Disque cluster, this package's or the original's.

    Connects when the first request is made, to any of the nodes, and moves to another one when
    that is lost, leaves, or does not answer in time. Many requests may be under way at the same
    time; they share connections.

    ``addresses``: ``host:port``, ``unix:/path``, a list of such, or
    ``disque://[:password@]host:port[,…]``; or the name of a cluster, whose addresses are looked up
    when a node is chosen: ``disque+dns://[:password@]name:port``, ``disque+srv://[:password@]name``.
    ``reactor``: the global one by default. ``timeout_s``: for connecting, and for a reply, on top
    of the time the request itself may wait. ``patience_s``: how long a request looks for a node
    that answers. ``discover``: use the nodes listed by HELLO too; the default is yes, but no with
    TLS, whose ports HELLO does not list. ``follow``: fetch from the node that creates most of the
    jobs. ``connections_max``: how many requests wait for jobs at nodes at the same time, each on a
    connection of its own; others are queued. ``random``: random numbers, for tests.

    :raises BadAddress: if an address is not valid.
    """

    _session: TwistedSession
    _delivered = TakenJob

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
        target = Target.of(addresses, password, tls, timeout_s, discover)
        session = TwistedSession(
            target.seeds,
            target.options,
            _global_reactor() if reactor is None else reactor,
            discover=target.discover,
            patience_s=patience_s,
            connections_max=connections_max,
            random=random or Random(),
        )
        super().__init__(session, target.seeds, follow)

    def set_name(self, name: str) -> None:
        """Name the connections, as CLIENT LIST shows them. A name has no spaces."""
        self._session.set_name(name)

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
        """One request per node; all are sent, and if some fail, the first failure is returned."""
        groups: defaultdict[Address, list[str]] = defaultdict(list)
        for job in jobs:
            groups[job.address].append(job.id)
        near = self._session.request_near
        sent = [near(address, request(*ids)) for address, ids in groups.items()]
        if len(sent) == 1:
            return sent[0]
        return gatherResults(sent, consumeErrors=True).addCallbacks(sum, _unwrapped)


def _unwrapped(failure: Failure) -> Failure:
    """The failure inside a :class:`FirstError`."""
    error = failure.value
    return error.subFailure if isinstance(error, FirstError) else failure


def _global_reactor() -> Any:
    """The reactor of the process. It is looked up here and not imported above, because importing
    it installs one, and a program may want another kind or pass its own."""
    return namedAny("twisted.internet.reactor")
