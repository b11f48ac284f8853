"""In which order jobs are fetched from several queues.

GETJOB goes through its queues from left to right and takes one job of each, again and again, until
it has enough. That is a fair share; a name that stands there twice has two. Strict precedence takes
a request per queue.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any, Final, Protocol

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from disque_tx.worker.backoff import Backoff
from disque_tx.worker.errors import BadHandlers
from disque_tx.worker.ports import Client, Taken

_WEIGHT_MAX: Final = 100
_REST: Final = Backoff(0.2, 2.0, 10.0, 0.5)
_log = Logger()


class Order(Protocol):
    """The queues of each request, in turn."""

    def tries(self) -> list[tuple[str, ...]]:
        """Requests that do not wait."""

    def waits(self) -> tuple[str, ...]:
        """The request that waits when these brought nothing."""


class Priority:
    """Nothing of a queue is fetched while there is something in one before it."""

    def __init__(self, queues: Sequence[str]) -> None:
        self._queues = tuple(queues)

    def tries(self) -> list[tuple[str, ...]]:
        return [(queue,) for queue in self._queues] if len(self._queues) > 1 else []

    def waits(self) -> tuple[str, ...]:
        return self._queues


class Fair:
    """Each queue has its share while it has jobs: equal, or by weights from 1 to 100."""

    def __init__(self, queues: Sequence[str], weights: Mapping[str, int] | None = None) -> None:
        weight = {queue: (weights or {}).get(queue, 1) for queue in queues}
        if not all(1 <= value <= _WEIGHT_MAX for value in weight.values()):
            raise BadHandlers("The weight of a queue is a number from 1 to 100.")
        rounds = range(max(weight.values()))
        self._names = [queue for turn in rounds for queue in queues if turn < weight[queue]]

    def tries(self) -> list[tuple[str, ...]]:
        return []

    def waits(self) -> tuple[str, ...]:
        # Small requests would otherwise always serve the first ones.
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


async def fetch(client: Client, order: Order, count: int) -> list[Taken]:
    """Up to that many jobs; waits until there is one. When cancelled, returns what there is."""
    jobs: list[Taken] = []
    try:
        for queues in order.tries():
            jobs += await client.take(*queues, count=count - len(jobs), no_hang=True)
            if len(jobs) >= count:
                return jobs
        if not jobs:
            jobs += await client.take(*order.waits(), count=count)
    except CancelledError:
        if not jobs:
            raise
    except Exception:
        # What another queue has delivered is not dropped because this one failed.
        if not jobs:
            raise
    return jobs


class Fetcher:
    """Has one request for jobs under way while there is room for them.

    ``room``: how many to ask for now. ``arrived``: is given the jobs.
    """

    def __init__(
        self,
        client: Client,
        order: Order,
        clock: IReactorTime,
        random: Random,
        room: Callable[[], int],
        arrived: Callable[[list[Taken]], object],
    ) -> None:
        self._client = client
        self._order = order
        self._clock = clock
        self._random = random
        self._room = room
        self._arrived = arrived
        self._asking: Deferred[Any] | None = None
        self._later: IDelayedCall | None = None
        self._failures = 0

    def go(self) -> None:
        """Ask, unless a request is under way."""
        if self._asking is None and self._later is None and self._room() > 0:
            self._later = self._clock.callLater(0, self._ask)

    def stop(self) -> None:
        """Ask no more. What has arrived yet is still told."""
        if self._later is not None:
            self._later.cancel()
            self._later = None
        if self._asking is not None:
            self._asking.cancel()

    def _ask(self) -> None:
        self._later = None
        room = self._room()
        if room > 0:
            asking = Deferred.fromCoroutine(fetch(self._client, self._order, room))
            self._asking = asking
            asking.addCallback(self._got).addErrback(self._failed)

    def _got(self, jobs: list[Taken]) -> None:
        self._asking = None
        if self._failures:
            _log.info("Jobs can be fetched again")
            self._failures = 0
        self._arrived(jobs)
        self.go()

    def _failed(self, failure: Failure) -> None:
        self._asking = None
        if failure.check(CancelledError):
            return
        self._failures += 1
        if self._failures == 1:
            _log.error("No jobs can be fetched; trying on: {error}", error=failure.value)
        self._later = self._clock.callLater(_REST.wait_s(self._failures, self._random), self._ask)
