"""The body of a dead letter: JSON, the format that workers write, version 2.

    {"version": 2, "queue": …, "id": …, "body": Base64, "reason": …, "traceback": …, "worker": …,
     "nacks": n, "additional_deliveries": n, "failed_at_s": unix time, "history": [],
     "retry_s": n, "ttl_s": n, "replicate": n}

Bytes of names and texts that are not UTF-8 are kept as lone surrogates, as clients in Python do.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from typing import Final

from mypy_extensions import i64

from disque_tx.core.jobs.job import Job, life_minutes, may_repeat
from disque_tx.messages.limits import REPLICATE_RANGE, RETRY_RANGE, TTL_RANGE

_VERSION: Final = 2
_READ: Final = (1, _VERSION)
#: How nodes and workers begin a letter.
_START: Final = b'{"version":'
#: Where the body of the job stands in a letter, by far the longest part. In no text: quotes are
#: escaped there.
_BODY: Final = b'"body": "'
_QUOTE: Final = b'"'
_BACKSLASH: Final = b"\\"
#: Of a letter that is only looked at, without the body of the job.
_OUTLINE_BYTES_MAX: Final = 64 * 1024


class LetterJob:
    """The job in a dead letter. ``retry_s``, ``ttl_s``, ``replicate``: what it was added with;
    ``replicate`` is 0 where the letter does not say."""

    __slots__ = ("body", "queue", "replicate", "retry_s", "ttl_s")

    def __init__(self, queue: bytes, body: bytes) -> None:
        self.queue: bytes = queue
        self.body: bytes = body
        self.retry_s: i64 = -1
        self.ttl_s: i64 = 0
        self.replicate: i64 = 0


def letter_body(job: Job, reason: bytes, node_id: bytes, by_nack: bool, wall_us: i64) -> bytes:
    """The letter about a job whose last return has been counted, ``by_nack`` or otherwise: its
    counters are those of the last delivery."""
    nacks, deliveries = job.nacks, job.deliveries
    if nacks and (by_nack or not deliveries):
        nacks -= 1
    elif deliveries:
        deliveries -= 1
    values: dict[str, object] = {
        "version": _VERSION,
        "queue": _text(job.queue),
        "id": _text(job.id),
        "body": b64encode(job.body).decode("ascii"),
        "reason": _text(reason),
        "traceback": "",
        "worker": f"node {node_id.decode('latin-1')}",
        "nacks": int(nacks),
        "additional_deliveries": int(deliveries),
        "failed_at_s": int(wall_us) / 1_000_000,
        "history": [],
        "retry_s": int(job.retry_s),
        "ttl_s": max(1, int(job.life_ms) // 1000),
        "replicate": max(1, int(job.repl)),
    }
    return json.dumps(values).encode("ascii")


def read_letter(body: bytes) -> LetterJob | None:
    """The job in a dead letter; ``None`` for any other body. Anybody can have written it."""
    if not body.startswith(b"{"):
        return None
    try:
        values = json.loads(body)
        if not isinstance(values, dict) or values.get("version") not in _READ:
            return None
        queue, content, job_id = values.get("queue"), values.get("body"), values.get("id")
        if not (isinstance(queue, str) and isinstance(content, str) and isinstance(job_id, str)):
            return None
        letter = LetterJob(
            queue.encode("utf-8", "surrogateescape"), b64decode(content, validate=True)
        )
        _read_terms(letter, values, job_id.encode("utf-8", "surrogateescape"))
    except (ValueError, RecursionError):
        return None
    return letter


def letter_outline(body: bytes) -> bytes:
    """A letter without the body of the job in it; empty for any other body, and for one that is too
    long to be read by the way, even so."""
    if not body.startswith(_START):
        return b""
    start: i64 = body.find(_BODY)
    if start >= 0:
        start += len(_BODY)
        end: i64 = body.find(_QUOTE, start)
        if end > start and body[end - 1 : end] != _BACKSLASH:
            if len(body) - (end - start) > _OUTLINE_BYTES_MAX:
                return b""
            return body[:start] + body[end:]
    return body if len(body) <= _OUTLINE_BYTES_MAX else b""


def letter_reason(outline: bytes) -> bytes:
    """The reason in a letter, of which :func:`letter_outline` is left; empty if there is none."""
    if not outline:
        return b""
    try:
        values = json.loads(outline)
    except (ValueError, RecursionError):
        return b""
    reason = values.get("reason") if isinstance(values, dict) else None
    if not isinstance(reason, str):
        return b""
    try:
        return reason.encode("utf-8", "surrogateescape")
    except ValueError:  # surrogates that stand for no byte
        return reason.encode("utf-8", "surrogatepass")


def is_letter(body: bytes) -> bool:
    """Whether a node or a worker wrote this letter; other JSON is not read for that."""
    return body.startswith(_START) and read_letter(body) is not None


def _read_terms(letter: LetterJob, values: dict[str, object], job_id: bytes) -> None:
    """What the job was added with. What the letter does not say is taken from the ID of the job,
    as far as that goes: one with RETRY 0 keeps it."""
    known = len(job_id) == 40
    letter.retry_s = _number(values.get("retry_s"), *RETRY_RANGE)
    if known and not may_repeat(job_id):
        letter.retry_s = 0
    letter.ttl_s = max(0, _number(values.get("ttl_s"), *TTL_RANGE))
    if letter.ttl_s == 0 and known:
        letter.ttl_s = 60 * i64(life_minutes(job_id))
    letter.replicate = max(0, _number(values.get("replicate"), *REPLICATE_RANGE))
    if letter.retry_s == 0:
        letter.replicate = 1


def _number(value: object, least: int, most: int) -> i64:
    """A whole number in this range; -1 for anything else."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        return -1
    return value


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")
