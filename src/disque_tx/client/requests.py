"""Every request a client may make: its words, and what becomes of the reply.

One function per command; what its parameters mean is told at the method of the same name in
:class:`disque_tx.client.blocking.commands.Commands`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, Generic, TypeAlias, TypeVar

import attrs

from disque_tx.client import replies
from disque_tx.client.values import ClusterNode, Hello, Job, JobDetails, QueueStat

Name: TypeAlias = str | bytes
Word: TypeAlias = str | bytes | int | float
_T = TypeVar("_T")

#: Requests that do no harm when they are executed twice, at different nodes: those that only look,
#: GETJOB (what was delivered to nobody comes back after its RETRY), and acknowledgements and
#: postponements, which the second time change nothing.
REPEATABLE: Final = frozenset(
    ("ACKJOB", "FASTACK", "GETJOB", "HELLO", "INFO", "JSCAN", "PING")
    + ("QLEN", "QPEEK", "QSCAN", "QSTAT", "SHOW", "WORKING")
)


@attrs.define
class Request(Generic[_T]):
    """``shape``: makes a value of the reply, or raises :class:`replies.Misshapen`.

    ``wait_s``: how long the node may block, ``None`` for ever. ``repeatable``: whether it may be
    executed twice.
    """

    words: tuple[Word, ...]
    shape: Callable[[Any], _T]
    wait_s: float | None = 0.0
    repeatable: bool = False

    @property
    def name(self) -> str:
        """The command."""
        return str(self.words[0])


def encoded(value: Name) -> bytes:
    """Text as it travels; names that came from a node go back as they were."""
    return value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value


def _plain(shape: Callable[[Any], _T], *words: Word) -> Request[_T]:
    """A request that does not wait, repeatable by its command."""
    return Request(words, shape, 0.0, words[0] in REPEATABLE)


# -- jobs ----------------------------------------------------------------------------------------


def add_job(
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
) -> Request[str]:
    """ADDJOB."""
    words: list[Word] = ["ADDJOB", encoded(queue), encoded(body), timeout_ms]
    for word, value in (
        ("REPLICATE", replicate),
        ("DELAY", delay_s),
        ("RETRY", retry_s),
        ("TTL", ttl_s),
        ("MAXLEN", maxlen),
    ):
        if value is not None:
            words += (word, value)
    if asynchronous:
        words.append("ASYNC")
    wait_s = timeout_ms / 1000 if timeout_ms else None
    return Request(tuple(words), replies.job_id, wait_s, retry_adds)


def get_jobs(
    queues: Iterable[Name], count: int = 1, wait_ms: int | None = None
) -> Request[list[Job]]:
    """GETJOB. ``wait_ms``: ``None`` to look only."""
    words: list[Word] = ["GETJOB", "WITHCOUNTERS", "COUNT", count]
    words += ["NOHANG"] if wait_ms is None else ["TIMEOUT", wait_ms]
    words += ["FROM", *map(encoded, queues)]
    return Request(tuple(words), replies.jobs, (wait_ms or 0) / 1000, True)


def ack_jobs(*job_ids: Name) -> Request[int]:
    """ACKJOB."""
    return _plain(replies.integer, "ACKJOB", *job_ids)


def fast_ack(*job_ids: Name) -> Request[int]:
    """FASTACK."""
    return _plain(replies.integer, "FASTACK", *job_ids)


def nack(*job_ids: Name) -> Request[int]:
    """NACK."""
    return _plain(replies.integer, "NACK", *job_ids)


def working(job_id: Name) -> Request[int]:
    """WORKING."""
    return _plain(replies.integer, "WORKING", job_id)


def enqueue_jobs(*job_ids: Name) -> Request[int]:
    """ENQUEUE."""
    return _plain(replies.integer, "ENQUEUE", *job_ids)


def dequeue_jobs(*job_ids: Name) -> Request[int]:
    """DEQUEUE."""
    return _plain(replies.integer, "DEQUEUE", *job_ids)


def delete_jobs(*job_ids: Name) -> Request[int]:
    """DELJOB."""
    return _plain(replies.integer, "DELJOB", *job_ids)


def show(job_id: Name) -> Request[JobDetails | None]:
    """SHOW."""
    return _plain(replies.details, "SHOW", job_id)


# -- queues --------------------------------------------------------------------------------------


def queue_length(queue: Name) -> Request[int]:
    """QLEN."""
    return _plain(replies.integer, "QLEN", encoded(queue))


def queue_peek(queue: Name, count: int = 10) -> Request[list[Job]]:
    """QPEEK."""
    return _plain(replies.jobs, "QPEEK", encoded(queue), count)


def queue_stat(queue: Name) -> Request[QueueStat | None]:
    """QSTAT."""
    return _plain(replies.stat, "QSTAT", encoded(queue))


@attrs.frozen
class Scan(Generic[_T]):
    """A listing that comes in pages, each the answer to a request of its own."""

    command: str
    options: tuple[Word, ...]
    shape: Callable[[Any], tuple[int, list[_T]]]

    def page(self, cursor: int) -> Request[tuple[int, list[_T]]]:
        """The request for the page at this cursor, 0 for the first."""
        return _plain(self.shape, self.command, cursor, *self.options)


def queue_scan(
    count: int = 100,
    minlen: int | None = None,
    maxlen: int | None = None,
    importrate: int | None = None,
) -> Scan[str]:
    """QSCAN."""
    words: list[Word] = ["COUNT", count]
    for word, value in (("MINLEN", minlen), ("MAXLEN", maxlen), ("IMPORTRATE", importrate)):
        if value is not None:
            words += (word, value)
    return Scan("QSCAN", tuple(words), replies.names)


def job_scan(
    queue: Name | None = None, states: tuple[str, ...] = (), count: int = 100
) -> Scan[JobDetails]:
    """JSCAN."""
    words: list[Word] = ["REPLY", "all", "COUNT", count]
    if queue is not None:
        words += ("QUEUE", encoded(queue))
    for state in states:
        words += ("STATE", state)
    return Scan("JSCAN", tuple(words), replies.descriptions)


def pause(queue: Name, *options: str) -> Request[str]:
    """PAUSE."""
    return _plain(replies.text, "PAUSE", encoded(queue), *options)


# -- nodes ---------------------------------------------------------------------------------------


def hello() -> Request[Hello]:
    """HELLO."""
    return _plain(replies.hello, "HELLO")


def auth(password: str) -> Request[str]:
    """AUTH."""
    return _plain(replies.text, "AUTH", password)


def set_name(name: str) -> Request[str]:
    """CLIENT SETNAME."""
    return Request(("CLIENT", "SETNAME", name), replies.text, repeatable=True)


def info(section: str | None = None) -> Request[dict[str, str]]:
    """INFO."""
    return _plain(replies.lines, "INFO", *([] if section is None else [section]))


def ping() -> Request[str]:
    """PING."""
    return _plain(replies.text, "PING")


def execute(*words: Word) -> Request[Any]:
    """Anything else, never repeated."""
    return Request(words, replies.anything)


def cluster_info() -> Request[dict[str, str]]:
    """CLUSTER INFO."""
    return Request(("CLUSTER", "INFO"), replies.lines, repeatable=True)


def cluster_nodes() -> Request[list[ClusterNode]]:
    """CLUSTER NODES."""
    return Request(("CLUSTER", "NODES"), replies.cluster_nodes, repeatable=True)


def cluster_my_id() -> Request[str]:
    """CLUSTER MYID."""
    return Request(("CLUSTER", "MYID"), replies.text, repeatable=True)


def cluster_meet(ip: str, port: int) -> Request[None]:
    """CLUSTER MEET."""
    return _plain(replies.done, "CLUSTER", "MEET", ip, port)


def cluster_forget(node_id: str) -> Request[None]:
    """CLUSTER FORGET."""
    return _plain(replies.done, "CLUSTER", "FORGET", node_id)


def cluster_leaving(leaving: bool | None = None) -> Request[bool]:
    """CLUSTER LEAVING."""
    if leaving is None:
        return _plain(replies.yes, "CLUSTER", "LEAVING")
    shape = replies.always(leaving)
    return _plain(shape, "CLUSTER", "LEAVING", "yes" if leaving else "no")


def cluster_reset(hard: bool = False) -> Request[None]:
    """CLUSTER RESET."""
    return _plain(replies.done, "CLUSTER", "RESET", "HARD" if hard else "SOFT")


def cluster_save_config() -> Request[None]:
    """CLUSTER SAVECONFIG."""
    return _plain(replies.done, "CLUSTER", "SAVECONFIG")
