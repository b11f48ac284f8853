"""One method per command, with typed results.

What happens when a connection is lost is told in :mod:`disque_tx.client.session`: commands in its
``REPEATABLE`` go to another node by themselves; the others raise ``OutcomeUnknown`` once they have
been sent. Any method may raise the exceptions of :mod:`disque_tx.client.errors`; named below are
those a program will want to handle.

SHOW, DELJOB, DEQUEUE, ENQUEUE, NACK, WORKING and all commands on queues are about what the node of
the moment knows. :meth:`Commands.address` is its address.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeAlias, TypeVar

from disque_tx.client import replies
from disque_tx.client.addresses import Address
from disque_tx.client.errors import ConnectionLost, ScanInterrupted
from disque_tx.client.origins import Origins
from disque_tx.client.session import Session
from disque_tx.client.values import ClusterNode, Hello, Job, JobDetails, QueueStat

Name: TypeAlias = str | bytes
_T = TypeVar("_T")
#: A GETJOB waits that long at one node; a node that went silent is found out that soon.
_WAIT_MS_MAX: Final = 10_000


def encoded(value: Name) -> bytes:
    """Text as it travels; names that came from a node go back as they were."""
    return value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value


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
        options: list[Any] = []
        for word, value in (
            ("REPLICATE", replicate),
            ("DELAY", delay_s),
            ("RETRY", retry_s),
            ("TTL", ttl_s),
            ("MAXLEN", maxlen),
        ):
            if value is not None:
                options += (word, value)
        if asynchronous:
            options.append("ASYNC")
        return self._session.call(
            "ADDJOB",
            encoded(queue),
            encoded(body),
            timeout_ms,
            *options,
            shape=replies.job_id,
            wait_s=timeout_ms / 1000 if timeout_ms else None,
            repeat=retry_adds,
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
        head = ("GETJOB", "WITHCOUNTERS", "COUNT", count)
        tail = ("FROM", *map(encoded, queues))
        if no_hang:
            return self._counted(*self._session.request(*head, "NOHANG", *tail, shape=replies.jobs))
        deadline_s = time.monotonic() + timeout_ms / 1000
        left_ms = timeout_ms or _WAIT_MS_MAX
        while True:
            wait_ms = max(1, min(left_ms, _WAIT_MS_MAX))
            node, jobs = self._session.request(
                *head, "TIMEOUT", wait_ms, *tail, shape=replies.jobs, wait_s=wait_ms / 1000
            )
            if timeout_ms:
                left_ms = int((deadline_s - time.monotonic()) * 1000)
            if jobs or left_ms <= 0:
                return self._counted(node, jobs)

    def _counted(self, node: Address, jobs: list[Job]) -> tuple[Address, list[Job]]:
        maker = self._origins.saw(jobs) if self._origins is not None else None
        if maker is not None:
            self._session.follow(maker)
        return node, jobs

    def ack_jobs(self, *job_ids: Name) -> int:
        """ACKJOB: these are done. Returns how many the node knew as not acknowledged."""
        return self._session.call("ACKJOB", *job_ids, shape=replies.integer)

    def fast_ack(self, *job_ids: Name) -> int:
        """FASTACK: delete these in the whole cluster, without making sure. Returns how many the
        node had."""
        return self._session.call("FASTACK", *job_ids, shape=replies.integer)

    def nack(self, *job_ids: Name) -> int:
        """NACK: these failed; queue them again now. Returns how many the node queued."""
        return self._session.call("NACK", *job_ids, shape=replies.integer)

    def working(self, job_id: Name) -> int:
        """WORKING: postpone the next delivery by RETRY; returns RETRY, in seconds.

        :raises UnknownJob: this node has no copy.
        :raises TooLate: half of the job's TTL is over.
        """
        return self._session.call("WORKING", job_id, shape=replies.integer)

    def enqueue_jobs(self, *job_ids: Name) -> int:
        """ENQUEUE: queue these now. Returns how many the node queued."""
        return self._session.call("ENQUEUE", *job_ids, shape=replies.integer)

    def dequeue_jobs(self, *job_ids: Name) -> int:
        """DEQUEUE: take these out of their queue, until RETRY. Returns how many were in it."""
        return self._session.call("DEQUEUE", *job_ids, shape=replies.integer)

    def delete_jobs(self, *job_ids: Name) -> int:
        """DELJOB: delete these at this node only. Returns how many it had."""
        return self._session.call("DELJOB", *job_ids, shape=replies.integer)

    def show(self, job_id: Name) -> JobDetails | None:
        """SHOW: all that this node knows of a job, ``None`` if nothing."""
        return self._session.call("SHOW", job_id, shape=replies.details)

    # -- queues ------------------------------------------------------------------------------

    def queue_length(self, queue: Name) -> int:
        """QLEN: how many jobs are queued at this node."""
        return self._session.call("QLEN", encoded(queue), shape=replies.integer)

    def queue_peek(self, queue: Name, count: int = 10) -> list[Job]:
        """QPEEK: the oldest queued jobs, or with a negative count the newest; nothing is taken."""
        return self._session.call("QPEEK", encoded(queue), count, shape=replies.jobs)

    def queue_stat(self, queue: Name) -> QueueStat | None:
        """QSTAT: figures of a queue, ``None`` if this node does not know it."""
        return self._session.call("QSTAT", encoded(queue), shape=replies.stat)

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
        options = {"MINLEN": minlen, "MAXLEN": maxlen, "IMPORTRATE": importrate}
        words = [word for item in options.items() if item[1] is not None for word in item]
        return self._pages("QSCAN", "COUNT", count, *words, shape=replies.names)

    def job_scan(
        self, queue: Name | None = None, states: tuple[str, ...] = (), count: int = 100
    ) -> Iterator[JobDetails]:
        """JSCAN: the jobs of one node, some perhaps more than once.

        ``states``: of wait-repl, active, queued, acked; all if none is named.

        :raises ScanInterrupted: the node was lost; start again.
        """
        words: list[Any] = ["REPLY", "all", "COUNT", count]
        if queue is not None:
            words += ("QUEUE", encoded(queue))
        for state in states:
            words += ("STATE", state)
        return self._pages("JSCAN", *words, shape=replies.descriptions)

    def _pages(
        self, command: str, *words: Any, shape: Callable[[Any], tuple[int, list[_T]]]
    ) -> Iterator[_T]:
        address = self._session.address()
        cursor = 0
        while True:
            try:
                cursor, items = self._session.call_at(address, command, cursor, *words, shape=shape)
            except ConnectionLost as lost:
                raise ScanInterrupted(command, lost) from lost
            yield from items
            if not cursor:
                return

    def pause(self, queue: Name, *options: str) -> str:
        """PAUSE: stop jobs from coming ``in`` or going ``out``, or ``all``, or ``none``.

        ``state`` only asks; with ``bcast`` all nodes do the same. Returns the state after it.
        """
        return self._session.call("PAUSE", encoded(queue), *options, shape=replies.text)

    # -- nodes -------------------------------------------------------------------------------

    def address(self) -> Address:
        """The node of the moment."""
        return self._session.address()

    def hello(self) -> Hello:
        """HELLO: who answers, and the nodes of the cluster."""
        return self._session.call("HELLO", shape=replies.hello)

    def info(self, section: str | None = None) -> dict[str, str]:
        """INFO: the figures of the node, or of one section."""
        words = ("INFO",) if section is None else ("INFO", section)
        return self._session.call(*words, shape=replies.lines)

    def ping(self) -> str:
        """PING: ``PONG``."""
        return self._session.call("PING", shape=replies.text)

    def auth(self, password: str) -> None:
        """AUTH: connect anew, now and from now on, with this password.

        :raises AuthenticationRefused: it is not the right one.
        """
        self._session.set_password(password)
        self.ping()

    def execute(self, *words: Any) -> Any:
        """Any other command, never repeated; the reply as redis-py parses it."""
        return self._session.call(*words, shape=replies.anything, repeat=False)

    def cluster_info(self) -> dict[str, str]:
        """CLUSTER INFO: figures of the cluster."""
        return self._session.call("CLUSTER", "INFO", shape=replies.lines, repeat=True)

    def cluster_nodes(self) -> list[ClusterNode]:
        """CLUSTER NODES: all nodes this one knows, as it finds them."""
        return self._session.call("CLUSTER", "NODES", shape=replies.cluster_nodes, repeat=True)

    def cluster_my_id(self) -> str:
        """CLUSTER MYID: who answers."""
        return self._session.call("CLUSTER", "MYID", shape=replies.text, repeat=True)

    def cluster_meet(self, ip: str, port: int) -> None:
        """CLUSTER MEET: begin to know the node there."""
        self._session.call("CLUSTER", "MEET", ip, port, shape=replies.text)

    def cluster_forget(self, node_id: str) -> None:
        """CLUSTER FORGET: know a node no longer."""
        self._session.call("CLUSTER", "FORGET", node_id, shape=replies.text)

    def cluster_leaving(self, leaving: bool | None = None) -> bool:
        """CLUSTER LEAVING: begin to leave, or stop doing so, or ask; whether it is leaving."""
        if leaving is None:
            return self._session.call("CLUSTER", "LEAVING", shape=replies.text) == "yes"
        word = "yes" if leaving else "no"
        self._session.call("CLUSTER", "LEAVING", word, shape=replies.text)
        return leaving

    def cluster_reset(self, hard: bool = False) -> None:
        """CLUSTER RESET: forget all nodes and all jobs; ``hard``: and the own ID."""
        word = "HARD" if hard else "SOFT"
        self._session.call("CLUSTER", "RESET", word, shape=replies.text)

    def cluster_save_config(self) -> None:
        """CLUSTER SAVECONFIG: write the nodes file now."""
        self._session.call("CLUSTER", "SAVECONFIG", shape=replies.text)
