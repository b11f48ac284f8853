"""The job in a dead letter, and the letter about a job; see :mod:`disque_tx.text.letters`."""

from __future__ import annotations

from mypy_extensions import i64

from disque_tx.core.jobs.job import Job, life_minutes, may_repeat
from disque_tx.messages.limits import REPLICATE_RANGE, RETRY_RANGE, TTL_RANGE
from disque_tx.text.letters import START, letter_bytes, letter_members


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
        "queue": _text(job.queue),
        "id": _text(job.id),
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
    return letter_bytes(values, job.body)


def read_letter(body: bytes) -> LetterJob | None:
    """The job in a dead letter; ``None`` for any other body. Anybody can have written it."""
    if not body.startswith(b"{"):
        return None
    try:
        values = letter_members(body)
        letter = LetterJob(_bytes(values["queue"]), values["body"])
        _read_terms(letter, values, _bytes(values["id"]))
    except ValueError:
        return None
    return letter


def is_letter(body: bytes) -> bool:
    """Whether a node or a worker wrote this letter; other JSON is not read for that."""
    return body.startswith(START) and read_letter(body) is not None


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


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
