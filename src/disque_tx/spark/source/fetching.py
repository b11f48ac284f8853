"""GETJOB at all nodes at once, within limits of jobs and bytes.

1. The nodes share what a batch may have; what some of them have not is fetched from the others.
2. How many jobs a request asks for follows from the mean size of those before it. The first
   requests ask for few: an answer comes as a whole, and a body may have megabytes.
3. A node that does not answer in time is left alone for a while, which doubles each time. Jobs
   that it delivered meanwhile come again after their RETRY.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Sequence
from typing import Any, Final, TypeVar

import attrs

from disque_tx.client.addresses import Address
from disque_tx.client.blocking.servers import PipelinedConnection, Servers
from disque_tx.client.errors import CannotConnect, ClientError, ConnectionLost, Refused
from disque_tx.client.requests import encoding as requests
from disque_tx.client.requests.encoding import Request
from disque_tx.client.requests.selection import Selection
from disque_tx.spark.options import Cluster
from disque_tx.spark.process.garbage import uncollected
from disque_tx.spark.process.threads import in_threads
from disque_tx.spark.source.rows import JobRows, delivered, joined

_LOG: Final = logging.getLogger(__name__)
_FIRST: Final = 16
_GROWTH: Final = 4
_AT_ONCE: Final = 500
#: For a request that does not wait, by a node that is only busy.
_TIMEOUT_S: Final = 2.0
_BACKOFF_S: Final = 5.0
_BACKOFF_S_MAX: Final = 60.0
_T = TypeVar("_T")


@attrs.frozen
class Limit:
    """What a batch may have. ``size``: of bodies, in bytes; the last request may exceed it."""

    jobs: int
    size: int


@attrs.define
class _Node:
    """A node, and whether it is left alone. ``until_s``: by a steady clock."""

    address: Address
    servers: Servers
    log_level: int
    backoff_s: float = 0.0
    until_s: float = 0.0
    lost: ConnectionLost | None = None

    def answered(self, answer: _T | ConnectionLost, now_s: float) -> _T | None:
        """The answer, ``None`` if there was none."""
        if not isinstance(answer, ConnectionLost):
            self.backoff_s, self.until_s, self.lost = 0.0, 0.0, None
            return answer
        if self.lost is None:
            why = "%s Meanwhile jobs are fetched from the other nodes."
            _LOG.log(self.log_level, why, answer)
        self.lost = answer
        self.backoff_s = min(_BACKOFF_S_MAX, 2 * self.backoff_s or _BACKOFF_S)
        self.until_s = now_s + self.backoff_s
        return None


@attrs.frozen
class _Taken:
    """What a node delivered. ``is_all``: it has no more now."""

    jobs: JobRows
    is_all: bool


class Fetching:
    """The nodes that a stream gets jobs from. ``now_s``: a steady clock. ``log_level``: for nodes
    that are left alone."""

    def __init__(
        self,
        cluster: Cluster,
        selection: Selection,
        now_s: Callable[[], float] = time.monotonic,
        log_level: int = logging.WARNING,
    ) -> None:
        self._selection = selection
        self._now_s = now_s
        timeout_s = min(_TIMEOUT_S, cluster.connection.timeout_s)
        options = attrs.evolve(cluster.connection, timeout_s=timeout_s)
        self._nodes = [
            _Node(node, Servers([node], options), log_level) for node in cluster.addresses
        ]

    def ask_each(self, ask: Callable[[PipelinedConnection], _T]) -> dict[Address, _T]:
        """Node → what a function found out there, of those that can be reached.

        :raises CannotConnect: when no node can be reached.
        """
        nodes = self._reachable()
        answers = self._at_once([(node, lambda node: _asked(node, ask)) for node in nodes])
        self._check(nodes)
        pairs = zip(nodes, answers, strict=True)
        return {node.address: answer for node, answer in pairs if answer is not None}

    @uncollected()
    def fetch(self, limit: Limit, turn: int, done: Collection[str]) -> dict[Address, JobRows]:
        """Node → jobs that it delivered, each job once. Jobs in ``done`` are stored already: they
        are acknowledged once more and left out. ``turn``: which node has the first turn.

        :raises CannotConnect: when no node can be reached.
        :raises Refused: when a node refuses to deliver.
        """
        found: dict[Address, list[JobRows]] = {}
        seen = set(done)
        first = turn % len(self._nodes)
        asked = have_more = self._reachable([*self._nodes[first:], *self._nodes[:first]])
        jobs_left, bytes_left = limit.jobs, limit.size
        while have_more and jobs_left > 0 and bytes_left > 0:
            shares = _shares(have_more, jobs_left, bytes_left)
            answers = self._at_once([(node, self._taking(share)) for node, share in shares])
            finished = set()
            for (node, _), taken in zip(shares, answers, strict=True):
                if taken is None or taken.is_all:
                    finished.add(node.address)
                if taken is not None:
                    new = _first(node, taken.jobs, seen, done)
                    found.setdefault(node.address, []).append(new)
                    jobs_left -= len(new.ids)
                    bytes_left -= taken.jobs.size
            have_more = [node for node in have_more if node.address not in finished]
        self._check(asked)
        together = {node: joined(several) for node, several in found.items()}
        return {node: jobs for node, jobs in together.items() if jobs.ids}

    def close(self) -> None:
        """Close all connections."""
        for node in self._nodes:
            node.servers.close()

    def _reachable(self, nodes: Sequence[_Node] = ()) -> list[_Node]:
        """The nodes that are not left alone, or all of them, if every one is."""
        now_s = self._now_s()
        nodes = nodes or self._nodes
        return [node for node in nodes if node.until_s <= now_s] or list(nodes)

    def _check(self, asked: Sequence[_Node]) -> None:
        lost = {str(node.address): node.lost.reason for node in asked if node.lost is not None}
        if len(lost) == len(asked):
            raise CannotConnect(lost)

    def _at_once(self, work: Sequence[tuple[_Node, Callable[[_Node], _T]]]) -> list[_T | None]:
        """The results, in order. Each node has connections of its own."""
        results = in_threads(_caught, work, len(work))
        now_s = self._now_s()
        return [
            node.answered(result, now_s) for (node, _), result in zip(work, results, strict=True)
        ]

    def _taking(self, share: Limit) -> Callable[[_Node], _Taken]:
        return lambda node: self._take(node, share)

    def _take(self, node: _Node, share: Limit) -> _Taken:
        taken: list[JobRows] = []
        jobs = size = 0
        most = _FIRST
        while jobs < share.jobs and size < share.size:
            fitting = (share.size - size) * jobs // size if size else most
            count = max(1, min(most, share.jobs - jobs, fitting))
            try:
                (some,) = _ask(node, [self._getting(count)])
            except ConnectionLost:
                if not taken:
                    raise
                return _Taken(joined(taken), True)
            except Refused as error:
                # The jobs of a node that leaves move to other nodes, and are fetched there.
                if error.code != "LEAVING":
                    raise
                some = JobRows()
            taken.append(some)
            jobs += len(some.ids)
            size += some.size
            if len(some.ids) < count:
                return _Taken(joined(taken), True)
            most = min(_AT_ONCE, most * _GROWTH)
        return _Taken(joined(taken), False)

    def _getting(self, count: int) -> Request[JobRows]:
        request = self._selection.request(count)
        return Request(request.words, delivered, request.wait_s, request.repeatable)


def _shares(nodes: Sequence[_Node], jobs: int, size: int) -> list[tuple[_Node, Limit]]:
    """The limits of each; a node without a share may have one later."""
    asked = nodes[:jobs]
    each, more = divmod(jobs, len(asked))
    share = -(-size // len(asked))
    return [(node, Limit(each + (at < more), share)) for at, node in enumerate(asked)]


def _first(node: _Node, jobs: JobRows, seen: set[str], done: Collection[str]) -> JobRows:
    """The jobs that were not seen before, which they are now. A job that is delivered twice while
    a batch is fetched, as its RETRY was almost over, counts once."""
    different = set(jobs.ids)
    if len(different) == len(jobs.ids) and seen.isdisjoint(different):
        seen |= different
        return jobs
    again = [job_id for job_id in dict.fromkeys(jobs.ids) if job_id in done]
    if again:
        node.servers.ask(node.address, [requests.ack_jobs(*again)])
    is_new = []
    for job_id in jobs.ids:
        is_new.append(job_id not in seen)
        seen.add(job_id)
    return jobs.where(is_new)


def _ask(node: _Node, several: Sequence[Request[_T]]) -> list[_T]:
    """:raises ClientError: one of the answers."""
    answers: list[Any] = node.servers.ask(node.address, several)
    for answer in answers:
        if isinstance(answer, ClientError):
            raise answer
    return answers


def _asked(node: _Node, ask: Callable[[PipelinedConnection], _T]) -> _T:
    """Like :meth:`Servers.ask`: nodes close connections that were idle for long, so once more."""
    try:
        return ask(node.servers.connection(node.address))
    except ConnectionLost:
        node.servers.close()
    try:
        return ask(node.servers.connection(node.address))
    except ConnectionLost:
        node.servers.close()
        raise


def _caught(work: tuple[_Node, Callable[[_Node], _T]]) -> _T | ConnectionLost:
    node, ask = work
    try:
        return ask(node)
    except ConnectionLost as error:
        return error
