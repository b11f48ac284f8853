"""One method per command, with typed results.

The words of each are in :mod:`disque_tx.client.requests`. What happens when a connection is lost
is told in :mod:`disque_tx.client.blocking.session`: commands that are ``REPEATABLE`` go to another
node by themselves; the others raise ``OutcomeUnknown`` once they have been sent. Any method may raise the
exceptions of :mod:`disque_tx.client.errors`; named below are those a program will want to handle.

SHOW, DELJOB, DEQUEUE, ENQUEUE, NACK, WORKING and all commands on queues are about what the node of
the moment knows. :meth:`Commands.address` is its address.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, TypeVar

from disque_tx.client import requests
from disque_tx.client.addresses import Address
from disque_tx.client.blocking.session import Session
from disque_tx.client.errors import ConnectionLost, ScanInterrupted
from disque_tx.client.origins import Origins
from disque_tx.client.requests import Name, Scan, Word
from disque_tx.client.search import Wait
from disque_tx.client.values import ClusterNode, Hello, Job, JobDetails, QueueStat

_T = TypeVar("_T")


class Commands:
    """The commands of Disque, executed by a session.

    ``follow``: whether to move to the node that most delivered jobs come from.
    """

    def __init__(self, session: Session, follow: bool = True) -> None:
        self._session = session
        self._origins = Origins() if follow else None

    # -- jobs --------------------------------------------------------------------------------

    def add_job(
        self,
        queue: Name,
        body: Name,
        timeout_ms: int = 5000,
        replicate: int | None = None,
        delay_s: int | None = None,
        retry_s: int | None = None,
        ttl_s: int | None = None,
        maxlen: int | None = None,
        asynchronous: bool = False,
        retry_adds: bool = False,
    ) -> str:
        """ADDJOB: add a job, and return its ID once there are as many copies as asked for.

        ``timeout_ms``: how long the copies may take, 0 for ever. ``retry_adds``: add it again
        at another node when the answer is lost; it may then be there twice.

        :raises OutcomeUnknown: the answer was lost; the job may have been added.
        :raises NotEnoughReplicas: it was not.
        :raises QueueFull, Paused, OutOfMemory: it was not, either.
        """
        return self._session.call(
            requests.add_job(
                queue,
                body,
                timeout_ms,
                replicate,
                delay_s,
                retry_s,
                ttl_s,
                maxlen,
                asynchronous,
                retry_adds,
            )
        )

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
            return self._counted(*self._session.request(requests.get_jobs(queues, count)))
        wait = Wait(time.monotonic, timeout_ms)
        wait_ms = wait.next_ms()
        while True:
            request = requests.get_jobs(queues, count, max(1, wait_ms))
            node, jobs = self._session.request(request)
            wait_ms = wait.next_ms()
            if jobs or not wait_ms:
                return self._counted(node, jobs)

    def _counted(self, node: Address, jobs: list[Job]) -> tuple[Address, list[Job]]:
        maker = self._origins.saw(jobs) if self._origins is not None else None
        if maker is not None:
            self._session.follow(maker)
        return node, jobs

    def ack_jobs(self, *job_ids: Name) -> int:
        """ACKJOB: these are done. Returns how many the node knew as not acknowledged."""
        return self._session.call(requests.ack_jobs(*job_ids))

    def fast_ack(self, *job_ids: Name) -> int:
        """FASTACK: delete these in the whole cluster, without making sure. Returns how many the
        node had."""
        return self._session.call(requests.fast_ack(*job_ids))

    def nack(self, *job_ids: Name) -> int:
        """NACK: these failed; queue them again now. Returns how many the node queued."""
        return self._session.call(requests.nack(*job_ids))

    def working(self, job_id: Name) -> int:
        """WORKING: postpone the next delivery by RETRY; returns RETRY, in seconds.

        :raises UnknownJob: this node has no copy.
        :raises TooLate: half of the job's TTL is over.
        """
        return self._session.call(requests.working(job_id))

    def enqueue_jobs(self, *job_ids: Name) -> int:
        """ENQUEUE: queue these now. Returns how many the node queued."""
        return self._session.call(requests.enqueue_jobs(*job_ids))

    def dequeue_jobs(self, *job_ids: Name) -> int:
        """DEQUEUE: take these out of their queue, until RETRY. Returns how many were in it."""
        return self._session.call(requests.dequeue_jobs(*job_ids))

    def delete_jobs(self, *job_ids: Name) -> int:
        """DELJOB: delete these at this node only. Returns how many it had."""
        return self._session.call(requests.delete_jobs(*job_ids))

    def show(self, job_id: Name) -> JobDetails | None:
        """SHOW: all that this node knows of a job, ``None`` if nothing."""
        return self._session.call(requests.show(job_id))

    def show_jobs(self, *job_ids: Name) -> list[JobDetails | None]:
        """SHOW for each, in one round trip to one node."""
        return self._session.call_all([requests.show(job_id) for job_id in job_ids])

    # -- queues ------------------------------------------------------------------------------

    def queue_length(self, queue: Name) -> int:
        """QLEN: how many jobs are queued at this node."""
        return self._session.call(requests.queue_length(queue))

    def queue_peek(self, queue: Name, count: int = 10) -> list[Job]:
        """QPEEK: the oldest queued jobs, or with a negative count the newest; nothing is taken."""
        return self._session.call(requests.queue_peek(queue, count))

    def queue_stat(self, queue: Name) -> QueueStat | None:
        """QSTAT: figures of a queue, ``None`` if this node does not know it."""
        return self._session.call(requests.queue_stat(queue))

    def queue_scan(
        self,
        count: int = 100,
        minlen: int | None = None,
        maxlen: int | None = None,
        importrate: int | None = None,
    ) -> Iterator[str]:
        """QSCAN: the names of the queues of one node, some perhaps more than once.

        ``count``: how many to ask for at a time.

        :raises ScanInterrupted: the node was lost; start again.
        """
        return self._pages(requests.queue_scan(count, minlen, maxlen, importrate))

    def job_scan(
        self, queue: Name | None = None, states: tuple[str, ...] = (), count: int = 100
    ) -> Iterator[JobDetails]:
        """JSCAN: the jobs of one node, some perhaps more than once.

        ``states``: of wait-repl, active, queued, acked; all if none is named.

        :raises ScanInterrupted: the node was lost; start again.
        """
        return self._pages(requests.job_scan(queue, states, count))

    def _pages(self, scan: Scan[_T]) -> Iterator[_T]:
        address = self._session.address()
        cursor = 0
        while True:
            try:
                cursor, items = self._session.call_at(address, scan.page(cursor))
            except ConnectionLost as lost:
                raise ScanInterrupted(scan.command, lost) from lost
            yield from items
            if not cursor:
                return

    def pause(self, queue: Name, *options: str) -> str:
        """PAUSE: stop jobs from coming ``in`` or going ``out``, or ``all``, or ``none``.

        ``state`` only asks; with ``bcast`` all nodes do the same. Returns the state after it.
        """
        return self._session.call(requests.pause(queue, *options))

    # -- nodes -------------------------------------------------------------------------------

    def address(self) -> Address:
        """The node of the moment."""
        return self._session.address()

    def hello(self) -> Hello:
        """HELLO: who answers, and the nodes of the cluster."""
        return self._session.call(requests.hello())

    def info(self, section: str | None = None) -> dict[str, str]:
        """INFO: the figures of the node, or of one section."""
        return self._session.call(requests.info(section))

    def ping(self) -> str:
        """PING: ``PONG``."""
        return self._session.call(requests.ping())

    def auth(self, password: str) -> None:
        """AUTH: connect anew, now and from now on, with this password.

        :raises AuthenticationRefused: it is not the right one.
        """
        self._session.set_password(password)
        self.ping()

    def execute(self, *words: Word) -> Any:
        """Any other command, never repeated; the reply as redis-py parses it."""
        return self._session.call(requests.execute(*words))

    def cluster_info(self) -> dict[str, str]:
        """CLUSTER INFO: figures of the cluster."""
        return self._session.call(requests.cluster_info())

    def cluster_nodes(self) -> list[ClusterNode]:
        """CLUSTER NODES: all nodes this one knows, as it finds them."""
        return self._session.call(requests.cluster_nodes())

    def cluster_my_id(self) -> str:
        """CLUSTER MYID: who answers."""
        return self._session.call(requests.cluster_my_id())

    def cluster_meet(self, ip: str, port: int) -> None:
        """CLUSTER MEET: begin to know the node there."""
        self._session.call(requests.cluster_meet(ip, port))

    def cluster_forget(self, node_id: str) -> None:
        """CLUSTER FORGET: know a node no longer."""
        self._session.call(requests.cluster_forget(node_id))

    def cluster_leaving(self, leaving: bool | None = None) -> bool:
        """CLUSTER LEAVING: begin to leave, or stop doing so, or ask; whether it is leaving."""
        return self._session.call(requests.cluster_leaving(leaving))

    def cluster_reset(self, hard: bool = False) -> None:
        """CLUSTER RESET: forget all nodes and all jobs; ``hard``: and the own ID."""
        self._session.call(requests.cluster_reset(hard))

    def cluster_save_config(self) -> None:
        """CLUSTER SAVECONFIG: write the nodes file now."""
        self._session.call(requests.cluster_save_config())
