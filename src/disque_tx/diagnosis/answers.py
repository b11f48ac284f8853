"""What nodes answer about their queues, put together: answers to the questions of ASK."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

import attrs

from disque_tx.client.requests.replies import json_object
from disque_tx.diagnosis.facts import FailureFacts

#: Workers that are asked for their versions, of each node.
WORKERS_MAX: Final = 100
#: The steps of the history by which the growth of a queue is known, and queues of which it is.
QUARTER_S: Final = 900
GROWING_MAX: Final = 5
_HOUR_QUARTERS: Final = 4
#: The place of the jobs that are queued in a row of HISTORY.
_QUEUED: Final = 5
_VERSION_CHARACTERS_MAX: Final = 100


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


def with_versions(
    failures: tuple[FailureFacts, ...], rows: Iterable[list[Any]]
) -> tuple[FailureFacts, ...]:
    """The same, with the versions of the workers. ``rows``: of WORKERS of all nodes, which end with
    what a worker says about itself: a stranger's text."""
    versions = dict(filter(None, (_version(row[-1]) for row in rows if row)))
    return tuple(attrs.evolve(one, version=versions.get(one.worker, "")) for one in failures)


def _version(said: bytes | str) -> tuple[str, str] | None:
    """A worker and its version."""
    values = json_object(said)
    if values is None:
        return None
    worker, version = values.get("worker"), values.get("version")
    if not (isinstance(worker, str) and isinstance(version, str)):
        return None
    return worker, version[:_VERSION_CHARACTERS_MAX]


def hour_of(now_s: float) -> tuple[int, int]:
    """The first and the last step of the history that :func:`more_than_before` is about: an hour
    and what has passed of this quarter of one."""
    last = int(now_s) // QUARTER_S
    return max(0, last - _HOUR_QUARTERS), last


def more_than_before(queued: int, first: int, answers: Iterable[list[bytes | str]]) -> int:
    """How many more jobs are queued than at the end of the step ``first``. ``answers``: to HISTORY
    about the queue, of all nodes. A queue that was empty has no point in that step."""
    before = 0
    for rows in answers:
        for row in rows[:1]:
            numbers = row.split()
            if len(numbers) > _QUEUED and int(numbers[0]) == first:
                before += int(numbers[_QUEUED])
    return max(0, queued - before)


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
