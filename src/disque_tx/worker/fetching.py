"""Fetching jobs from several queues, by priority or in fair shares.

GETJOB FROM goes through its queues from left to right and takes one job of each, again and again,
until it has enough. So each queue gets a fair share; a name that is listed twice gets two shares.
Strict priority needs a request per queue.

Without weights, fair shares are left to the node, which knows what all workers have in flight:
GETJOB MATCH takes from the queue with the fewest jobs in flight. Nodes of the original refuse it.
They are asked as above, and nobody can ask them for queues that match a pattern.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any, Final, Protocol

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from disque_tx.client import Refused
from disque_tx.client.requests.encoding import encoded
from disque_tx.text.globs import escaped
from disque_tx.worker.base.context import DeliveredJob, WorkerClient
from disque_tx.worker.base.errors import BadHandlers
from disque_tx.worker.remote.commands import CONTROL_QUEUES
from disque_tx.worker.tasks.policy import Backoff
from disque_tx.worker.tasks.routes import is_pattern

_WEIGHT_MAX: Final = 100
#: Patterns in one request; the limit of a node.
_PATTERNS_MAX: Final = 100
#: After so many requests a node is asked again whether it knows MATCH.
_OWN_REQUESTS: Final = 1_000
#: What a node that does not know MATCH answers.
_UNKNOWN: Final = "syntax error"
_BACKOFF: Final = Backoff(0.2, 2.0, 10.0, 0.5)
_log = Logger()


class Order(Protocol):
    """Which queues each request for jobs names, patterns among them."""

    def shared(self) -> tuple[str, ...]:
        """The patterns of the request that leaves the choice to the node; empty for none."""

    def refused(self) -> None:
        """A node does not know such requests."""

    def tries(self) -> list[tuple[str, ...]]:
        """Requests that do not wait."""

    def waits(self) -> tuple[str, ...]:
        """The request that waits, after the others have found nothing."""


class Priority:
    """Jobs of a queue are fetched only while all queues before it are empty."""

    def __init__(self, queues: Sequence[str]) -> None:
        self._queues = tuple(queues)

    def shared(self) -> tuple[str, ...]:
        return ()

    def refused(self) -> None:
        pass

    def tries(self) -> list[tuple[str, ...]]:
        return [(queue,) for queue in self._queues] if len(self._queues) > 1 else []

    def waits(self) -> tuple[str, ...]:
        return self._queues


class Fair:
    """Each queue that has jobs gets a share: equal ones, or by weights from 1 to 100."""

    def __init__(self, queues: Sequence[str], weights: Mapping[str, int] | None = None) -> None:
        # So many requests are not left to nodes, after one that was refused.
        self._own_left = 0
        self._shared = () if weights else tuple(map(_pattern, queues))
        weight = {queue: (weights or {}).get(queue, 1) for queue in queues}
        if not all(1 <= value <= _WEIGHT_MAX for value in weight.values()):
            raise BadHandlers("The weight of a queue is a number from 1 to 100.")
        rounds = range(max(weight.values()))
        self._names = [queue for turn in rounds for queue in queues if turn < weight[queue]]

    def shared(self) -> tuple[str, ...]:
        if len(self._shared) > _PATTERNS_MAX:
            return ()
        self._own_left = max(0, self._own_left - 1)
        return () if self._own_left else self._shared

    def refused(self) -> None:
        self._own_left = _OWN_REQUESTS

    def tries(self) -> list[tuple[str, ...]]:
        return []

    def waits(self) -> tuple[str, ...]:
        # Otherwise small requests would always take from the first queues.
        self._names.append(self._names.pop(0))
        return tuple(self._names)


def order_of(name: str, queues: Sequence[str], weights: Mapping[str, int] | None) -> Order:
    """The order with this name.

    :raises BadHandlers: there is none.
    """
    if name == "fair":
        return Fair(queues, weights)
    if name == "priority" and not weights:
        return Priority(queues)
    raise BadHandlers("The order is 'priority', or 'fair', for which there may be weights.")


def _pattern(queue: str) -> str:
    """A pattern for one queue, or for those that it stands for."""
    if is_pattern(queue):
        return queue
    return escaped(encoded(queue)).decode("utf-8", "surrogateescape")


def _taking(client: WorkerClient, queues: Sequence[str], **options: Any) -> Deferred[Any]:
    """A request for jobs of queues, of which some may be patterns."""
    names = [queue for queue in queues if not is_pattern(queue)]
    if len(names) == len(queues):
        return client.take(*names, **options)
    patterns = tuple(dict.fromkeys(filter(is_pattern, queues)))
    return client.take(*names, match=patterns, except_=CONTROL_QUEUES, **options)


async def fetch(client: WorkerClient, order: Order, count: int) -> list[DeliveredJob]:
    """Fetch up to ``count`` jobs, waiting until there is one. When cancelled, returns those that
    have arrived."""
    shared = order.shared()
    if shared:
        try:
            taken = client.take(match=shared, except_=CONTROL_QUEUES, count=count)
            found: list[DeliveredJob] = await taken
        except Refused as error:
            if error.text != _UNKNOWN:
                raise
            order.refused()
        else:
            return found
    return await _fetch_named(client, order, count)


async def _fetch_named(client: WorkerClient, order: Order, count: int) -> list[DeliveredJob]:
    jobs: list[DeliveredJob] = []
    try:
        for queues in order.tries():
            jobs += await _taking(client, queues, count=count - len(jobs), no_hang=True)
            if len(jobs) >= count:
                return jobs
        if not jobs:
            jobs += await _taking(client, order.waits(), count=count)
    except CancelledError:
        if not jobs:
            raise
    except Exception:
        # Jobs of another queue are not dropped because this request failed.
        if not jobs:
            raise
    return jobs


class Fetcher:
    """Keeps one request for jobs under way while there is room for them.

    ``room``: returns how many jobs to ask for now. ``arrived``: called with delivered jobs.
    """

    def __init__(
        self,
        client: WorkerClient,
        order: Order,
        clock: IReactorTime,
        random: Random,
        room: Callable[[], int],
        arrived: Callable[[list[DeliveredJob]], object],
    ) -> None:
        self._client = client
        self._order = order
        self._clock = clock
        self._random = random
        self._room = room
        self._arrived = arrived
        self._request: Deferred[Any] | None = None
        self._later: IDelayedCall | None = None
        self._failures = 0

    def fetch_more(self) -> None:
        """Request jobs, if there is room and no request is under way."""
        if self._request is None and self._later is None and self._room() > 0:
            self._later = self._clock.callLater(0, self._fetch)

    def stop(self) -> None:
        """Request no more jobs. Jobs that have already arrived are still passed on."""
        if self._later is not None:
            self._later.cancel()
            self._later = None
        if self._request is not None:
            self._request.cancel()

    def _fetch(self) -> None:
        self._later = None
        room = self._room()
        if room > 0:
            request = Deferred.fromCoroutine(fetch(self._client, self._order, room))
            self._request = request
            request.addCallback(self._got).addErrback(self._failed)

    def _got(self, jobs: list[DeliveredJob]) -> None:
        self._request = None
        if self._failures:
            _log.info("Jobs can be fetched again")
            self._failures = 0
        self._arrived(jobs)
        self.fetch_more()

    def _failed(self, failure: Failure) -> None:
        self._request = None
        if failure.check(CancelledError):
            self.fetch_more()
            return
        self._failures += 1
        if self._failures == 1:
            _log.error("No jobs can be fetched; retrying: {error}", error=failure.value)
        self._later = self._clock.callLater(
            _BACKOFF.wait_s(self._failures, self._random), self._fetch
        )
