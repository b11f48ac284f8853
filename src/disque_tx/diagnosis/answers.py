"""What nodes answer about their queues, put together: answers to the questions of ASK."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import attrs

from disque_tx.diagnosis.facts import FailureFacts


def merged_failures(
    rows: Iterable[list[Any]], worker_of: Callable[[str], str]
) -> tuple[FailureFacts, ...]:
    """The rows of TROUBLES of all nodes, the queue with most failures first. Shorter rows, of nodes
    of another version, are left out. ``worker_of``: the worker whose connection has this name."""
    found: dict[str, FailureFacts] = {}
    for row in rows:
        if len(row) < 7:
            continue
        name, failed, timed_out, since_ms, error, job_id, attempts = row[:7]
        one = FailureFacts(
            _text(name), failed, timed_out, since_ms / 1000, _text(error), _text(job_id), attempts
        )
        if len(row) > 7 and row[7]:  # not from nodes of the version before
            one = attrs.evolve(one, worker=worker_of(_text(row[7])))
        known = found.get(one.name)
        found[one.name] = one if known is None else known.with_others(one)
    return tuple(sorted(found.values(), key=lambda one: (-one.failed, one.name)))


def usual_waits(count: int, answers: Iterable[list[int]]) -> list[float | None]:
    """The usual waits of this number of queues in seconds: by the answers to USUAL, of which the
    greatest counts; ``None`` where no node knows any."""
    greatest = [-1] * count
    for answer in answers:
        for place, wait_ms in enumerate(answer[:count]):
            greatest[place] = max(greatest[place], wait_ms)
    return [None if wait_ms < 0 else wait_ms / 1000 for wait_ms in greatest]


def _text(data: bytes | str) -> str:
    return data if isinstance(data, str) else data.decode("utf-8", "surrogateescape")
