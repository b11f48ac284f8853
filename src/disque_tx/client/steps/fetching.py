"""Jobs are fetched.

A client that shares one connection among requests, of asyncio or Twisted, asks without waiting
first: only if there is no job, a GETJOB waits on a connection of its own. A blocking client has
that connection for itself, and waits at once.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from typing import Final, Generic, TypeVar

from disque_tx.client.addresses import Address
from disque_tx.client.nodes import Origins
from disque_tx.client.requests import encoding as requests
from disque_tx.client.requests.encoding import Name
from disque_tx.client.requests.selection import Selection
from disque_tx.client.steps.delivered import Delivered
from disque_tx.client.steps.methods import Methods, operation
from disque_tx.client.steps.single import Steps, located, located_all
from disque_tx.client.values import Job, JobDetails

#: The class of the jobs that a client delivers.
TakenJob = TypeVar("TakenJob", bound=Delivered)
#: How long one GETJOB may wait at a node; a node that stopped answering is noticed after that time.
WAIT_MS_MAX: Final = 10_000
#: How many jobs are asked for in one round trip when they are wanted in the order of their queues.
IN_ORDER_AT_ONCE: Final = 16


class Fetching(Methods, Generic[TakenJob]):
    """The methods of clients that fetch jobs.

    ``_delivered``: the class of taken jobs. ``_origins``: counts where fetched jobs come from;
    ``None`` to stay at the current node.
    """

    _delivered: type[TakenJob]
    _origins: Origins | None

    @operation
    def get_jobs(
        self,
        *queues: Name,
        match: Name | Iterable[Name] = (),
        except_: Name | Iterable[Name] = (),
        count: int = 1,
        timeout_ms: int = 0,
        no_hang: bool = False,
    ) -> Steps[list[Job]]:
        """GETJOB: up to ``count`` jobs of the queues, the first queue first.

        Waits until there is one, for ``timeout_ms`` at most (0: forever), or with ``no_hang``
        not at all; returns an empty list if there was none. If the answer is lost, other jobs are
        fetched; those in the lost answer are delivered again after their RETRY (never, if it is 0).

        ``match``: one or more patterns; jobs of all queues that match one of them, and none of
        ``except_``, in fair shares, behind those that are named. Originals refuse it.
        """
        chosen = Selection.of(queues, match, except_)
        return (yield from self._fetch(chosen, count, timeout_ms, no_hang))[1]

    @operation
    def take(
        self,
        *queues: Name,
        match: Name | Iterable[Name] = (),
        except_: Name | Iterable[Name] = (),
        count: int = 1,
        timeout_s: float | None = None,
        no_hang: bool = False,
    ) -> Steps[list[TakenJob]]:
        """Fetch up to ``count`` jobs, the first queue first; an empty list if there was none.

        Waits until there is one, for ``timeout_s`` at most (``None``: forever), or with
        ``no_hang`` not at all. Jobs that are done must be acknowledged. ``match``, ``except_``: see
        :meth:`get_jobs`.
        """
        chosen = Selection.of(queues, match, except_)
        return (yield from self._take(chosen, count, timeout_s, no_hang))

    @operation
    def dequeue(self, queue: Name, timeout: float | None = None) -> Steps[TakenJob | None]:
        """Fetch a job, waiting for it ``timeout`` seconds (``None``: forever, 0: not at all).

        Returns ``None`` if there was none. Jobs that are done must be acknowledged.
        """
        return (yield from self._dequeue(queue, timeout))

    def _dequeue(self, queue: Name, timeout_s: float | None) -> Steps[TakenJob | None]:
        jobs = yield from self._take(Selection.of((queue,)), 1, timeout_s)
        return jobs[0] if jobs else None

    def _take(
        self, chosen: Selection, count: int, timeout_s: float | None, no_hang: bool = False
    ) -> Steps[list[TakenJob]]:
        no_hang = no_hang or timeout_s == 0
        node, jobs = yield from self._fetch(chosen, count, whole_ms(timeout_s), no_hang)
        return [self._delivered(self._session, node, job) for job in jobs]

    def _fetch(
        self, chosen: Selection, count: int, timeout_ms: int, no_hang: bool
    ) -> Steps[tuple[Address, list[Job]]]:
        """See :meth:`get_jobs`; also returns the address of the node that delivered."""
        wait = Wait(self._session.now_s, timeout_ms)
        wait_ms = None if no_hang or self._shares else max(1, wait.next_ms())
        found = yield from located(chosen.request(count, wait_ms))
        while not (found[1] or no_hang) and (wait_ms := wait.next_ms()):
            found = yield from located(chosen.request(count, wait_ms))
        id_prefix = self._origins.count(found[1]) if self._origins is not None else None
        if id_prefix is not None:
            self._session.follow(id_prefix)
        return found


class Batches(Fetching[TakenJob]):
    """The methods of clients that make many requests in one round trip."""

    @operation
    def take_in_order(
        self, *queues: Name, count: int = 1, timeout_s: float | None = None
    ) -> Steps[list[TakenJob]]:
        """Fetch up to ``count`` jobs, those of the first queue before those of the others: GETJOB
        with COUNT takes one of each queue in turn. Otherwise like :meth:`take`."""
        chosen = Selection.of(queues)
        if len(queues) == 1:
            return (yield from self._take(chosen, count, timeout_s))
        jobs = yield from self._take(chosen, 1, timeout_s)
        while jobs and len(jobs) < count:
            many = [chosen.request(1)] * min(count - len(jobs), IN_ORDER_AT_ONCE)
            node, answers = yield from located_all(many)
            jobs += [self._delivered(self._session, node, job) for got in answers for job in got]
            if not answers[-1]:
                break
        return jobs

    @operation
    def show_jobs(self, *job_ids: Name) -> Steps[list[JobDetails | None]]:
        """SHOW for each, in one round trip to one node."""
        many = [requests.show(job_id) for job_id in job_ids]
        return (yield from located_all(many))[1] if many else []


class Iteration(Fetching[TakenJob]):
    """The methods of clients that are iterated over by ``async for``."""

    async def jobs(self, queue: Name, timeout_s: float | None = None) -> AsyncIterator[TakenJob]:
        """The jobs of a queue, for ``async for``; ends when none came for ``timeout_s``."""
        while (job := await self._perform(self._dequeue(queue, timeout_s))) is not None:
            yield job


def whole_ms(timeout_s: float | None) -> int:
    """A timeout in the form of GETJOB, where 0 means forever: a short one becomes 1 ms."""
    return 0 if timeout_s is None else max(1, int(timeout_s * 1000))


class Wait:
    """A wait for jobs, made of GETJOBs that wait for :data:`WAIT_MS_MAX` at most.

    ``timeout_ms``: of the whole, 0 forever.
    """

    __slots__ = ("_deadline_s", "_now_s")

    def __init__(self, now_s: Callable[[], float], timeout_ms: int) -> None:
        self._now_s = now_s
        self._deadline_s = now_s() + timeout_ms / 1000 if timeout_ms else None

    def next_ms(self) -> int:
        """How long the next GETJOB waits; 0 after the deadline."""
        if self._deadline_s is None:
            return WAIT_MS_MAX
        left_ms = round((self._deadline_s - self._now_s()) * 1000)
        return max(0, min(left_ms, WAIT_MS_MAX))
