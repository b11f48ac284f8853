"""A day of a made-up shop as event logs, to try the pipeline without a cluster that logs events.

Each queue has a fault that an analysis should find: ``mail`` waits at noon, ``orders`` and
``imports`` come back with a reason, ``thumbnails`` run for longer than their RETRY, ``reports`` has
too few workers. Two jobs are lost, and one event is missing in the logs.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from heapq import heapify, heappop, heappush, heapreplace
from itertools import count, islice
from operator import attrgetter
from pathlib import Path
from typing import Any, Final

import attrs
import zstandard

_BEGIN: Final = datetime(2026, 11, 20, tzinfo=UTC)
_BOOT_MS: Final = int(_BEGIN.timestamp() * 1000)
_DAY_S: Final = 86_400.0
_NODES: Final = ("a1" * 20, "b2" * 20)
#: How many jobs are added in each hour of the day, beside the others.
_BY_HOUR: Final = (1, 1, 1, 1, 1, 2, 3, 5, 7, 8, 9, 11, 12, 10, 8, 7, 7, 6, 5, 4, 3, 2, 2, 1)
_DELIVERIES_MAX: Final = 5
#: When jobs are added of which nothing else is logged: before the missing event, and after it.
_LOST_S: Final = (3_600.0, 54_000.0)
_MISSING_S: Final = 7_200.0


@attrs.frozen
class _Work:
    """The jobs of a queue. ``jobs``: on this day. ``run_s``: the median. ``fails``: the share of
    runs that end with a NACK, of which ``note`` is the reason."""

    queue: str
    jobs: int
    workers: int
    run_s: float
    retry_s: int
    fails: float = 0.0
    note: str = ""


_WORK: Final = (
    _Work("mail", 900, 1, 20.0, retry_s=300),
    _Work("orders", 300, 2, 2.0, retry_s=60, fails=0.15, note="the bank does not answer"),
    _Work("thumbnails", 250, 2, 4.0, retry_s=8),
    _Work("reports", 150, 1, 700.0, retry_s=7_200),
    _Work("imports", 20, 1, 30.0, retry_s=300, fails=0.6, note="line 7 has no price"),
)


@attrs.frozen
class _Event:
    """What happened to a job. ``more``: other values of the line."""

    at_s: float
    kind: str
    job: int
    more: dict[str, Any]


def write_sample(folder: str | Path) -> list[Path]:
    """Write the event logs of two nodes into a folder, which is created; returns the files. They
    are the same each time.

    :raises OSError: when they cannot be written.
    """
    events = sorted(_all_events(), key=attrgetter("at_s"))
    written = []
    for place, node in enumerate(_NODES):
        own = [one for one in events if one.job % len(_NODES) == place and one.at_s < _DAY_S]
        lines = [_line(node, number, event) for number, event in enumerate(own)]
        if place == 0:
            missing = next(at for at, event in enumerate(own) if event.at_s >= _MISSING_S)
            del lines[missing]
        path = Path(folder, f"dt={_BEGIN:%Y-%m-%d}", "hour=00", _file_name(node))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(zstandard.ZstdCompressor().compress(b"".join(lines)))
        written.append(path)
    return written


def _file_name(node: str) -> str:
    return f"events-{node[:8]}-{_BOOT_MS}-{0:012d}.jsonl.zst"


def _line(node: str, number: int, event: _Event) -> bytes:
    time = _BEGIN + timedelta(seconds=event.at_s)
    values = {
        "specversion": "1.0",
        "id": f"{_BOOT_MS}.{number}",
        "source": f"disque:{node}",
        "time": time.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        "type": f"disque.job.{event.kind}",
        "subject": f"D-{node[:8]}-{event.job:024d}-05a1",
        "messaging.system": "disque",
        **event.more,
    }
    return json.dumps(values).encode() + b"\n"


def _all_events() -> Iterator[_Event]:
    chance = random.Random(1)
    jobs = count()
    for work in _WORK:
        # When a job is queued, its number, how often it was given back, and how often RETRY was
        # over.
        queued: list[tuple[float, int, int, int]] = []
        for job in islice(jobs, work.jobs):
            (hour,) = chance.choices(range(len(_BY_HOUR)), _BY_HOUR)
            at_s = (hour + chance.random()) * 3_600
            queued.append((at_s, job, 0, 0))
            yield from _added(work, job, at_s)
        yield from _runs(work, queued, chance)
    for job, at_s in zip(jobs, _LOST_S, strict=False):
        yield from _added(_WORK[0], job, at_s, ttl_s=3_600)


def _added(work: _Work, job: int, at_s: float, ttl_s: int = 2 * 86_400) -> Iterator[_Event]:
    given = {"retry_s": work.retry_s, "ttl_s": ttl_s, "delay_s": 0, "replicate": 1}
    yield _Event(at_s, "added", job, {**_values(work), **given})
    yield _Event(at_s, "queued", job, _values(work))


def _runs(
    work: _Work, queued: list[tuple[float, int, int, int]], chance: random.Random
) -> Iterator[_Event]:
    """What workers do with jobs, of which they take the one that was queued first."""
    heapify(queued)
    free_s = [0.0] * work.workers
    done_s: dict[int, float] = {}
    while queued:
        since_s, job, nacks, retries = heappop(queued)
        begun_s = max(since_s + chance.expovariate(200), free_s[0])
        if begun_s >= done_s.get(job, _DAY_S):
            continue
        run_s = chance.lognormvariate(0, 0.6) * work.run_s
        end_s = begun_s + run_s
        heapreplace(free_s, end_s)
        values = _values(work, nacks, retries)
        ended = {**values, "run_ms": int(run_s * 1000)}
        wait_ms = int((begun_s - since_s) * 1000)
        yield _Event(begun_s, "delivered", job, {**values, "wait_ms": wait_ms})
        if run_s > work.retry_s:
            over_s = begun_s + work.retry_s
            yield _Event(over_s, "requeued", job, {**values, "reason": "retry"})
            heappush(queued, (over_s, job, nacks, retries + 1))
        if chance.random() >= work.fails:
            if job not in done_s:
                done_s[job] = end_s
                yield _Event(end_s, "acked", job, ended)
            continue
        yield _Event(end_s, "nacked", job, {**ended, "note": work.note})
        if nacks + 1 == _DELIVERIES_MAX:
            yield _Event(end_s, "dropped", job, {**values, "note": work.note})
        else:
            yield _Event(end_s, "requeued", job, {**values, "reason": "nack"})
            heappush(queued, (end_s, job, nacks + 1, retries))


def _values(work: _Work, nacks: int = 0, retries: int = 0) -> dict[str, Any]:
    """What is known of a job at each of its events."""
    return {
        "messaging.destination.name": work.queue,
        "messaging.message.body.size": 200,
        "nacks": nacks,
        "additional_deliveries": retries,
    }
