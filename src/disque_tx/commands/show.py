"""A job with everything that is known about it, for SHOW and JSCAN (client protocol, 18)."""

from __future__ import annotations

from collections.abc import Collection

from disque_tx.core.job import Job
from disque_tx.core.store import awake_ms
from disque_tx.messages import ACTIVE, QUEUED, STATE_NAMES, ReplySink


def show_job(replies: ReplySink, job: Job, now_ms: int) -> None:
    """The flat list of 15 names and values."""
    replies.array(30)
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
    replies.bulk(b"body")
    _text(replies, job, job.body)


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
