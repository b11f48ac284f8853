"""Commands on jobs: from words to calls on the node (client protocol, sections 14 to 18)."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from mypy_extensions import i64

from disque_tx.commands.base.arguments import integer, job_ids, timeout_ms
from disque_tx.commands.base.context import Server
from disque_tx.commands.jobs.progress import write_progress
from disque_tx.core.base.client import Client
from disque_tx.core.jobs.addrequest import AddRequest, Unique
from disque_tx.core.jobs.job import PLACE_NAMES, Job
from disque_tx.core.jobs.progress import ProgressReports
from disque_tx.core.state.store import awake_ms
from disque_tx.errors import CommandError, syntax_error
from disque_tx.messages.keys import KEY_BYTES_MAX
from disque_tx.messages.limits import (
    DELAY_RANGE,
    MAXLEN_RANGE,
    REPLICATE_RANGE,
    RETRY_RANGE,
    SECONDS_MAX,
    TTL_RANGE,
)
from disque_tx.messages.records import ACTIVE, QUEUED, STATE_NAMES, ReplySink

_REPLICATE: Final = 1
_TTL: Final = 2
_RETRY: Final = 3
_DELAY: Final = 4
_MAXLEN: Final = 5
#: Option of ADDJOB → (which, least, most, error text).
_ADD_OPTIONS: Final[dict[bytes, tuple[int, int, int, str]]] = {
    b"REPLICATE": (_REPLICATE, *REPLICATE_RANGE, "REPLICATE must be between 1 and 65535"),
    b"TTL": (_TTL, *TTL_RANGE, "TTL must be a number > 0"),
    b"RETRY": (_RETRY, *RETRY_RANGE, "RETRY time must be a non negative number"),
    b"DELAY": (_DELAY, *DELAY_RANGE, "DELAY time must be a non negative number"),
    b"MAXLEN": (_MAXLEN, *MAXLEN_RANGE, "MAXLEN must be a positive number"),
}


def addjob(server: Server, client: Client, argv: list[bytes]) -> None:
    """ADDJOB queue body ms-timeout [option ...]"""
    request = AddRequest(argv[1], argv[2])
    if len(argv) > 4:
        read_add_options(request, argv, 4)
    request.timeout_ms = timeout_ms(argv[3])
    server.node.add_job(client, request)


def read_add_options(request: AddRequest, argv: list[bytes], at: i64) -> None:
    """Take the options of ADDJOB from position ``at`` on; ``CommandError`` for what is none."""
    while at < len(argv):
        word = argv[at].upper()
        option = _ADD_OPTIONS.get(word)
        if option is None:
            if word == b"ASYNC":
                request.asynchronous = True
                at += 1
            else:
                at = _read_unique(request, word, argv, at)
            continue
        if at + 1 >= len(argv):
            raise syntax_error()
        which, least, most, text = option
        value = integer(argv[at + 1])
        if value < least or value > most:
            raise CommandError("ERR", text)
        if which == _REPLICATE:
            request.replicate = value
        elif which == _TTL:
            request.ttl_s = value
        elif which == _RETRY:
            request.retry_s = value
        elif which == _DELAY:
            request.delay_s = value
        else:
            request.maxlen = value
        at += 2


def _read_unique(request: AddRequest, word: bytes, argv: list[bytes], at: i64) -> i64:
    """UNIQUE, and FOR and WITHNEW behind it; where the next option stands."""
    if word == b"UNIQUE" and at + 1 < len(argv):
        key = argv[at + 1]
        if not 1 <= len(key) <= KEY_BYTES_MAX:
            raise CommandError("ERR", f"UNIQUE: a key has 1 to {KEY_BYTES_MAX} bytes")
        request.unique = Unique(key)
        return at + 2
    unique = request.unique
    if word == b"WITHNEW" and unique is not None:
        unique.with_new = True
        return at + 1
    if word == b"FOR" and unique is not None and at + 1 < len(argv):
        value = integer(argv[at + 1])
        if value < 1 or value > SECONDS_MAX:
            raise CommandError("ERR", f"FOR must be between 1 and {SECONDS_MAX} seconds")
        unique.for_s = value
        return at + 2
    raise syntax_error()


def ackjob(server: Server, client: Client, argv: list[bytes]) -> None:
    """ACKJOB [id ...]"""
    client.replies.integer(server.node.acknowledge(job_ids(argv)))


def fastack(server: Server, client: Client, argv: list[bytes]) -> None:
    """FASTACK [id ...]"""
    client.replies.integer(server.node.fast_acknowledge(job_ids(argv)))


def deljob(server: Server, client: Client, argv: list[bytes]) -> None:
    """DELJOB [id ...]"""
    client.replies.integer(server.node.delete(job_ids(argv)))


def enqueue(server: Server, client: Client, argv: list[bytes]) -> None:
    """ENQUEUE [id ...]"""
    client.replies.integer(server.node.enqueue(job_ids(argv), False))


def dequeue(server: Server, client: Client, argv: list[bytes]) -> None:
    """DEQUEUE [id ...]"""
    client.replies.integer(server.node.dequeue(job_ids(argv)))


def show(server: Server, client: Client, argv: list[bytes]) -> None:
    """SHOW id"""
    job = server.node.jobs.get(job_ids(argv)[0])
    if job is None:
        client.replies.null()
    else:
        show_job(client.replies, job, server.node.now_ms, server.node.state.progress)


def show_job(
    replies: ReplySink, job: Job, now_ms: int, reports: ProgressReports, with_body: bool = True
) -> None:
    """The flat list of 15 names and values, and 3 more if its progress is known; the body is the
    last. Without it: where the job is at this node, and for how long."""
    progress = reports.of(job)
    replies.array((30 if with_body else 32) + (6 if progress is not None else 0))
    replies.bulk(b"id")
    replies.bulk(job.id)
    replies.bulk(b"queue")
    _text(replies, job, job.queue)
    replies.bulk(b"state")
    replies.bulk(STATE_NAMES[job.state])
    _number(replies, b"repl", job.repl)
    _number(replies, b"ttl", max(0, (job.expire_ms - now_ms + 999) // 1000))
    _number(replies, b"ctime", job.ctime)
    _number(replies, b"delay", job.delay_s)
    _number(replies, b"retry", job.retry_s)
    _number(replies, b"nacks", job.nacks)
    _number(replies, b"additional-deliveries", job.deliveries)
    _nodes(replies, b"nodes-delivered", job.nodes)
    _nodes(replies, b"nodes-confirmed", job.confirmed if job.confirmed is not None else ())
    replies.bulk(b"next-requeue-within")
    if job.qtime_ms == 0 or not (job.state == ACTIVE or job.state == QUEUED):
        replies.null()
    else:
        replies.integer(max(0, job.qtime_ms - now_ms))
    _number(replies, b"next-awake-within", max(0, awake_ms(job) - now_ms))
    if progress is not None:
        write_progress(replies, progress, reports.age_ms(progress))
    if with_body:
        replies.bulk(b"body")
        _text(replies, job, job.body)
    else:
        replies.bulk(b"place")
        replies.bulk(PLACE_NAMES[job.place])
        _number(replies, b"place-age", now_ms - job.moved_ms if job.moved_ms != 0 else 0)


def _number(replies: ReplySink, name: bytes, value: int) -> None:
    replies.bulk(name)
    replies.integer(value)


def _text(replies: ReplySink, job: Job, data: bytes) -> None:
    if job.dummy:
        replies.null()
    else:
        replies.bulk(data)


def _nodes(replies: ReplySink, name: bytes, nodes: Collection[bytes]) -> None:
    replies.bulk(name)
    replies.array(len(nodes))
    for node in nodes:
        replies.bulk(node)
