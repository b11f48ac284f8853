"""One method per command, each with a Deferred of its typed result.

The words of each are in :mod:`disque_tx.client.requests`, the meaning of parameters and results is
that of :class:`disque_tx.client.blocking.commands.Commands`. A Deferred fails with one of the
exceptions of :mod:`disque_tx.client.errors`. Any may be cancelled: a request that was not sent is not sent then;
the reply to one that was is dropped when it comes. So a job whose ADDJOB was cancelled may have
been added, and stays. Jobs in the reply to a cancelled GETJOB are given back with NACK.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, TypeVar

from twisted.internet.defer import Deferred

from disque_tx.client import requests
from disque_tx.client.addresses import Address
from disque_tx.client.errors import ConnectionLost, ScanInterrupted
from disque_tx.client.origins import Origins
from disque_tx.client.requests import Name, Scan, Word
from disque_tx.client.search import Wait
from disque_tx.client.tx.session import Session
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
    ) -> Deferred[str]:
        """ADDJOB: add a job; fires with its ID once there are as many copies as asked for.

        Fails with :class:`OutcomeUnknown` when the answer is lost: the job may have been added.
        With :class:`NotEnoughReplicas`, :class:`QueueFull`, :class:`Paused`, :class:`OutOfMemory`
        it was not.
        """
        return self._session.request(
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
    ) -> Deferred[list[Job]]:
        """GETJOB: up to ``count`` jobs of the queues, the first queue first.

        Waits until there is one, for ``timeout_ms`` at most (0: for ever), or with ``no_hang``
        not at all; an empty list then. It looks first, on the connection of all short requests;
        only when there is nothing, it waits on a connection of its own.
        """
        return self._fetch(queues, count, timeout_ms, no_hang).addCallback(_value)

    def _fetch(
        self, queues: tuple[Name, ...], count: int, timeout_ms: int, no_hang: bool
    ) -> Deferred[tuple[Address, list[Job]]]:
        """See :meth:`get_jobs`; also tells the node that delivered."""
        found = self._session.locate(requests.get_jobs(queues, count))
        if not no_hang:
            wait = Wait(self._session.now_s, timeout_ms)
            found.addCallback(self._looked, queues, count, wait)
        return found if self._origins is None else found.addCallback(self._counted, self._origins)

    def _looked(
        self,
        found: tuple[Address, list[Job]],
        queues: tuple[Name, ...],
        count: int,
        wait: Wait,
    ) -> tuple[Address, list[Job]] | Deferred[tuple[Address, list[Job]]]:
        if found[1]:
            return found
        return Deferred.fromCoroutine(self._waited(found, queues, count, wait))

    async def _waited(
        self,
        found: tuple[Address, list[Job]],
        queues: tuple[Name, ...],
        count: int,
        wait: Wait,
    ) -> tuple[Address, list[Job]]:
        while not found[1] and (wait_ms := wait.next_ms()):
            found = await self._session.locate(requests.get_jobs(queues, count, wait_ms))
        return found

    def _counted(
        self, found: tuple[Address, list[Job]], origins: Origins
    ) -> tuple[Address, list[Job]]:
        maker = origins.saw(found[1])
        if maker is not None:
            self._session.follow(maker)
        return found

    def ack_jobs(self, *job_ids: Name) -> Deferred[int]:
        """ACKJOB: these are done. Fires with how many the node knew as not acknowledged."""
        return self._session.request(requests.ack_jobs(*job_ids))

    def fast_ack(self, *job_ids: Name) -> Deferred[int]:
        """FASTACK: delete these in the whole cluster, without making sure. Fires with how many
        the node had."""
        return self._session.request(requests.fast_ack(*job_ids))

    def nack(self, *job_ids: Name) -> Deferred[int]:
        """NACK: these failed; queue them again now. Fires with how many the node queued."""
        return self._session.request(requests.nack(*job_ids))

    def working(self, job_id: Name) -> Deferred[int]:
        """WORKING: postpone the next delivery by RETRY; fires with RETRY, in seconds."""
        return self._session.request(requests.working(job_id))

    def enqueue_jobs(self, *job_ids: Name) -> Deferred[int]:
        """ENQUEUE: queue these now. Fires with how many the node queued."""
        return self._session.request(requests.enqueue_jobs(*job_ids))

    def dequeue_jobs(self, *job_ids: Name) -> Deferred[int]:
        """DEQUEUE: take these out of their queue, until RETRY. Fires with how many were in it."""
        return self._session.request(requests.dequeue_jobs(*job_ids))

    def delete_jobs(self, *job_ids: Name) -> Deferred[int]:
        """DELJOB: delete these at this node only. Fires with how many it had."""
        return self._session.request(requests.delete_jobs(*job_ids))

    def show(self, job_id: Name) -> Deferred[JobDetails | None]:
        """SHOW: all that this node knows of a job, ``None`` if nothing."""
        return self._session.request(requests.show(job_id))

    # -- queues ------------------------------------------------------------------------------

    def queue_length(self, queue: Name) -> Deferred[int]:
        """QLEN: how many jobs are queued at this node."""
        return self._session.request(requests.queue_length(queue))

    def queue_peek(self, queue: Name, count: int = 10) -> Deferred[list[Job]]:
        """QPEEK: the oldest queued jobs, or with a negative count the newest; nothing is taken."""
        return self._session.request(requests.queue_peek(queue, count))

    def queue_stat(self, queue: Name) -> Deferred[QueueStat | None]:
        """QSTAT: figures of a queue, ``None`` if this node does not know it."""
        return self._session.request(requests.queue_stat(queue))

    def queue_scan(
        self,
        count: int = 100,
        minlen: int | None = None,
        maxlen: int | None = None,
        importrate: int | None = None,
    ) -> AsyncIterator[str]:
        """QSCAN: the names of the queues of one node, some perhaps more than once; for
        ``async for``.

        :raises ScanInterrupted: the node was lost; start again.
        """
        return self._pages(requests.queue_scan(count, minlen, maxlen, importrate))

    def job_scan(
        self, queue: Name | None = None, states: tuple[str, ...] = (), count: int = 100
    ) -> AsyncIterator[JobDetails]:
        """JSCAN: the jobs of one node, some perhaps more than once; for ``async for``.

        :raises ScanInterrupted: the node was lost; start again.
        """
        return self._pages(requests.job_scan(queue, states, count))

    async def _pages(self, scan: Scan[_T]) -> AsyncIterator[_T]:
        address, (cursor, items) = await self._session.locate(scan.page(0))
        while True:
            for item in items:
                yield item
            if not cursor:
                return
            try:
                cursor, items = await self._session.request_at(address, scan.page(cursor))
            except ConnectionLost as lost:
                raise ScanInterrupted(scan.command, lost) from lost

    def pause(self, queue: Name, *options: str) -> Deferred[str]:
        """PAUSE: stop jobs from coming ``in`` or going ``out``, or ``all``, or ``none``; ``state``
        only asks, ``bcast`` tells all nodes. Fires with the state after it."""
        return self._session.request(requests.pause(queue, *options))

    # -- nodes -------------------------------------------------------------------------------

    def address(self) -> Deferred[Address]:
        """The node of the moment."""
        return self._session.locate(requests.hello()).addCallback(_address)

    def hello(self) -> Deferred[Hello]:
        """HELLO: who answers, and the nodes of the cluster."""
        return self._session.request(requests.hello())

    def info(self, section: str | None = None) -> Deferred[dict[str, str]]:
        """INFO: the figures of the node, or of one section."""
        return self._session.request(requests.info(section))

    def ping(self) -> Deferred[str]:
        """PING: ``PONG``."""
        return self._session.request(requests.ping())

    def auth(self, password: str) -> Deferred[None]:
        """AUTH: connect anew, now and from now on, with this password.

        Fails with :class:`AuthenticationRefused` when it is not the right one.
        """
        self._session.set_password(password)
        return self.ping().addCallback(_nothing)

    def execute(self, *words: Word) -> Deferred[Any]:
        """Any other command, never repeated; strings in the reply are bytes."""
        return self._session.request(requests.execute(*words))

    def cluster_info(self) -> Deferred[dict[str, str]]:
        """CLUSTER INFO: figures of the cluster."""
        return self._session.request(requests.cluster_info())

    def cluster_nodes(self) -> Deferred[list[ClusterNode]]:
        """CLUSTER NODES: all nodes this one knows, as it finds them."""
        return self._session.request(requests.cluster_nodes())

    def cluster_my_id(self) -> Deferred[str]:
        """CLUSTER MYID: who answers."""
        return self._session.request(requests.cluster_my_id())

    def cluster_meet(self, ip: str, port: int) -> Deferred[None]:
        """CLUSTER MEET: begin to know the node there."""
        return self._session.request(requests.cluster_meet(ip, port))

    def cluster_forget(self, node_id: str) -> Deferred[None]:
        """CLUSTER FORGET: know a node no longer."""
        return self._session.request(requests.cluster_forget(node_id))

    def cluster_leaving(self, leaving: bool | None = None) -> Deferred[bool]:
        """CLUSTER LEAVING: begin to leave, or stop doing so, or ask; whether it is leaving."""
        return self._session.request(requests.cluster_leaving(leaving))

    def cluster_reset(self, hard: bool = False) -> Deferred[None]:
        """CLUSTER RESET: forget all nodes and all jobs; ``hard``: and the own ID."""
        return self._session.request(requests.cluster_reset(hard))

    def cluster_save_config(self) -> Deferred[None]:
        """CLUSTER SAVECONFIG: write the nodes file now."""
        return self._session.request(requests.cluster_save_config())


def _address(found: tuple[Address, Any]) -> Address:
    return found[0]


def _value(found: tuple[Address, _T]) -> _T:
    return found[1]


def _nothing(_: object) -> None:
    """For results that say nothing."""
