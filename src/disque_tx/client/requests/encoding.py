"""Every request a client may make: its parameters, its words, and how its reply is parsed.

:mod:`disque_tx.client.steps.commands` turns each function into a method of all clients. The
function's docstring becomes the method's, so it says what the method returns.

SHOW, DELJOB, DEQUEUE, ENQUEUE, NACK, WORKING and all commands on queues are about what the current
node knows; the clients' ``address()`` is its address.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, Generic, TypeAlias, TypeVar

import attrs

from disque_tx.client.requests import replies
from disque_tx.client.values import ClusterNode, Hello, Job, JobDetails, QueueStat

Name: TypeAlias = str | bytes
Word: TypeAlias = str | bytes | int | float
_T = TypeVar("_T")

#: Requests that do no harm when they are executed twice, at different nodes: those that only read,
#: GETJOB (a job whose delivery was lost is delivered again after its RETRY), and acknowledgements
#: and postponements, which the second time change nothing.
REPEATABLE: Final = frozenset(
    ("ACKJOB", "FASTACK", "GETJOB", "HELLO", "INFO", "JSCAN", "PING")
    + ("QLEN", "QPEEK", "QSCAN", "QSTAT", "SHOW", "WORKING")
)


#: Bytes of the reason of a NACK that a node takes.
REASON_BYTES_MAX: Final = 1_024
#: Bytes of the note of a progress that a node takes.
PROGRESS_NOTE_BYTES_MAX: Final = 256


@attrs.define
class Request(Generic[_T]):
    """A command with its arguments.

    ``parse``: makes a value of the reply, or raises :class:`replies.MalformedReply`. ``wait_s``:
    how long the node may block, ``None`` forever. ``repeatable``: whether it may be executed
    twice.
    """

    words: tuple[Word, ...]
    parse: Callable[[Any], _T]
    wait_s: float | None = 0.0
    repeatable: bool = False

    @property
    def name(self) -> str:
        """The command."""
        return str(self.words[0])


def encoded(value: Name) -> bytes:
    """Text as sent to a node. Names that came from a node go back unchanged, UTF-8 or not."""
    return value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value


def _plain(parse: Callable[[Any], _T], *words: Word) -> Request[_T]:
    """A request that does not wait, repeatable by its command."""
    return Request(words, parse, 0.0, words[0] in REPEATABLE)


def about_each(name: str, ids: Sequence[str]) -> bytes:
    """The same request about each of these jobs, as it is sent."""
    beginning = f"*2\r\n${len(name)}\r\n{name}\r\n$"
    sizes = set(map(len, ids))
    if len(sizes) == 1:
        beginning += f"{sizes.pop()}\r\n"
        return (beginning + f"\r\n{beginning}".join(ids) + "\r\n").encode()
    return "".join([f"{beginning}{len(each)}\r\n{each}\r\n" for each in ids]).encode()


# -- jobs ----------------------------------------------------------------------------------------


def ack_jobs(*job_ids: Name) -> Request[int]:
    """ACKJOB: these jobs are done. Returns how many the node knew and had not acknowledged."""
    return _plain(replies.integer, "ACKJOB", *job_ids)


def fast_ack(*job_ids: Name) -> Request[int]:
    """FASTACK: delete these jobs in the whole cluster, without waiting until all nodes confirm it.
    Returns how many the node had."""
    return _plain(replies.integer, "FASTACK", *job_ids)


def nack(*job_ids: Name, delay_s: float | None = None, reason: str | None = None) -> Request[int]:
    """NACK: these jobs failed. Returns how many the node will deliver again.

    ``delay_s``: after this many seconds, ``None``: as the policy of their queue says, or now.
    ``reason``: why, for their dead letters; cut to 1,024 bytes.

    :raises BadJobId: also by an original, which knows neither ``delay_s`` nor ``reason``.
    """
    return _plain(replies.integer, "NACK", *_nack_options(delay_s, reason), *job_ids)


def _nack_options(delay_s: float | None, reason: str | None) -> list[Word]:
    options: list[Word] = []
    if delay_s is not None:
        options += ["DELAY", f"{delay_s:.3f}"]
    if reason is not None:
        options += ["REASON", encoded(reason)[:REASON_BYTES_MAX]]
    return options


def working(
    job_id: Name, *, progress: float | None = None, note: str | None = None
) -> Request[int]:
    """WORKING: postpone the next delivery by RETRY; returns RETRY, in seconds.

    ``progress``: how much of the work is done, from 0 to 1; ``note``: what is worked on, up to 256
    bytes. The node shows both with the job. Originals know neither, and refuse such a request.

    :raises UnknownJob: this node has no copy.
    :raises TooLate: half of the job's TTL is over.
    :raises ValueError: the progress or the note is not valid.
    """
    words = [] if progress is None else progress_words(progress, note)
    return _plain(replies.integer, "WORKING", job_id, *words)


def progress_words(progress: float, note: str | None) -> list[Word]:
    """The words of WORKING that report a progress.

    :raises ValueError: it is not from 0 to 1, or the note is longer than 256 bytes.
    """
    if not 0 <= progress <= 1:
        raise ValueError(f"A progress is a number from 0 to 1, not {progress!r}.")
    words: list[Word] = ["PROGRESS", f"{progress:.3f}"]
    if note:
        text = note.encode("utf-8", "replace")
        if len(text) > PROGRESS_NOTE_BYTES_MAX:
            raise ValueError(f"A note has {PROGRESS_NOTE_BYTES_MAX} bytes at most.")
        words += ["NOTE", text]
    return words


def enqueue_jobs(*job_ids: Name) -> Request[int]:
    """ENQUEUE: queue these jobs now. Returns how many the node queued."""
    return _plain(replies.integer, "ENQUEUE", *job_ids)


def dequeue_jobs(*job_ids: Name) -> Request[int]:
    """DEQUEUE: remove these jobs from their queue until their RETRY is over. Returns how many were
    in it."""
    return _plain(replies.integer, "DEQUEUE", *job_ids)


def delete_jobs(*job_ids: Name) -> Request[int]:
    """DELJOB: delete these jobs at this node only. Returns how many it had."""
    return _plain(replies.integer, "DELJOB", *job_ids)


def show(job_id: Name) -> Request[JobDetails | None]:
    """SHOW: all that this node knows about a job, ``None`` if nothing."""
    return _plain(replies.details, "SHOW", job_id)


# -- queues --------------------------------------------------------------------------------------


def queue_length(queue: Name) -> Request[int]:
    """QLEN: how many jobs are queued at this node."""
    return _plain(replies.integer, "QLEN", encoded(queue))


def queue_peek(queue: Name, count: int = 10) -> Request[list[Job]]:
    """QPEEK: the oldest queued jobs, or with a negative count the newest. The jobs stay queued."""
    return _plain(replies.jobs, "QPEEK", encoded(queue), count)


def queue_stat(queue: Name) -> Request[QueueStat | None]:
    """QSTAT: figures of a queue, ``None`` if this node does not know it."""
    return _plain(replies.stat, "QSTAT", encoded(queue))


def pause(queue: Name, *options: str) -> Request[str]:
    """PAUSE: stop jobs from coming ``in``, from going ``out``, or both (``all``); ``none`` resumes.

    ``state`` changes nothing; with ``bcast`` all nodes do the same. Returns the state after it.
    """
    return _plain(replies.text, "PAUSE", encoded(queue), *options)


# -- nodes ---------------------------------------------------------------------------------------


def hello() -> Request[Hello]:
    """HELLO: the ID of the node that answers, and the nodes of the cluster."""
    return _plain(replies.hello, "HELLO")


def auth(password: str) -> Request[str]:
    """AUTH: authenticate the connection."""
    return _plain(replies.text, "AUTH", password)


def set_name(name: str) -> Request[str]:
    """CLIENT SETNAME: name the connection, as CLIENT LIST shows it."""
    return Request(("CLIENT", "SETNAME", name), replies.text, repeatable=True)


def info(section: str | None = None) -> Request[dict[str, str]]:
    """INFO: the figures of the node, or of one section."""
    return _plain(replies.lines, "INFO", *([] if section is None else [section]))


def ping() -> Request[str]:
    """PING: ``PONG``."""
    return _plain(replies.text, "PING")


def execute(*words: Word) -> Request[Any]:
    """Any other command, never repeated. Returns the reply unchanged, its strings as bytes."""
    return Request(words, replies.anything)


def cluster_info() -> Request[dict[str, str]]:
    """CLUSTER INFO: figures of the cluster."""
    return Request(("CLUSTER", "INFO"), replies.lines, repeatable=True)


def cluster_nodes() -> Request[list[ClusterNode]]:
    """CLUSTER NODES: all nodes that this one knows, and their state as it sees them."""
    return Request(("CLUSTER", "NODES"), replies.cluster_nodes, repeatable=True)


def cluster_my_id() -> Request[str]:
    """CLUSTER MYID: the ID of the node that answers."""
    return Request(("CLUSTER", "MYID"), replies.text, repeatable=True)


def cluster_meet(ip: str, port: int, bus_port: int = 0) -> Request[None]:
    """CLUSTER MEET: have the node start a handshake with the node at this address. ``bus_port``:
    where its bus listens, 0 for the port + 10000, which is all that an original knows."""
    words = (bus_port,) if bus_port else ()
    return _plain(replies.done, "CLUSTER", "MEET", ip, port, *words)


def cluster_forget(node_id: str) -> Request[None]:
    """CLUSTER FORGET: remove a node from the node's table."""
    return _plain(replies.done, "CLUSTER", "FORGET", node_id)


def cluster_leaving(leaving: bool | None = None, evacuate: bool = False) -> Request[bool]:
    """CLUSTER LEAVING: start to leave, stop leaving, or with ``None`` change nothing. Returns
    whether the node is leaving. ``evacuate``: a node that starts to leave also gives all its jobs
    to other nodes; INFO's section ``copies`` says how many are left."""
    if leaving is None:
        return _plain(replies.yes, "CLUSTER", "LEAVING")
    parse = replies.always(leaving)
    if leaving and evacuate:
        return _plain(parse, "CLUSTER", "LEAVING", "yes", "EVACUATE")
    return _plain(parse, "CLUSTER", "LEAVING", "yes" if leaving else "no")


def cluster_reset(hard: bool = False) -> Request[None]:
    """CLUSTER RESET: forget all nodes and all jobs; ``hard``: take a new node ID as well."""
    return _plain(replies.done, "CLUSTER", "RESET", "HARD" if hard else "SOFT")


def cluster_save_config() -> Request[None]:
    """CLUSTER SAVECONFIG: write the nodes file now."""
    return _plain(replies.done, "CLUSTER", "SAVECONFIG")
