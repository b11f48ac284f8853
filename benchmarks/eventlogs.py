"""Event logs of nodes that never were: as many events as wanted, quickly.

500 queues, one of which has 20 % of the jobs; 5 nodes; one job in ten moves to another node, one in
twenty fails once, one in fifty is too slow once, one in a hundred expires. The same arguments make
the same files.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import zstandard

NODES: Final = tuple(f"{at:x}" * 40 for at in range(10, 15))
QUEUES: Final = 500
_BIG_SHARE: Final = 0.2
_EVENTS_PER_JOB: Final = 5.3
_SEGMENT_EVENTS: Final = 200_000
_BOOT_MS: Final = 1_795_202_588_193
_MOVED_SHARE: Final = 0.1
_SPAN_US: Final = 2 * 3600 * 1_000_000
_ID_BYTES: Final = 18

#: What happens, as columns: time, kind, job, and what else the kind tells.
Columns = dict[str, Any]


def generate(folder: Path, events: int, processes: int = 2) -> int:
    """Write the logs of all nodes; returns how many events there are, about ``events``."""
    with ProcessPoolExecutor(processes) as pool:
        shares = [(folder, node, events // len(NODES)) for node in range(len(NODES))]
        return sum(pool.map(_node, *zip(*shares, strict=True)))


def _node(folder: Path, node: int, events: int) -> int:
    """The log of one node. Jobs that it imports are those that it makes for its neighbour."""
    jobs = int(events / _EVENTS_PER_JOB)
    neighbour = (node - 1) % len(NODES)
    own = _told(np.random.default_rng(node), node, jobs, at_home=True)
    moved = _told(np.random.default_rng(neighbour), neighbour, jobs, at_home=False)
    told = {name: np.concatenate([own[name], moved[name]]) for name in own}
    order = np.argsort(told["time"], kind="stable")
    for first in range(0, len(order), _SEGMENT_EVENTS):
        part = {
            name: column[order[first : first + _SEGMENT_EVENTS]] for name, column in told.items()
        }
        _write(folder, node, first, part)
    return len(order)


def _told(chance: np.random.Generator, node: int, jobs: int, at_home: bool) -> Columns:
    """What happens to the jobs of a node, in no order: there, or at its neighbour."""
    queue = np.where(
        chance.random(jobs) < _BIG_SHARE,
        0,
        1 + (chance.random(jobs) ** 2 * (QUEUES - 1)).astype(int),
    )
    added = chance.integers(0, _SPAN_US, jobs)
    wait_ms = chance.exponential(40, jobs).astype(np.int64)
    run_ms = chance.exponential(15, jobs).astype(np.int64) + queue % 7
    fate = chance.random(jobs)
    raw = b64encode(chance.bytes(_ID_BYTES * jobs)).replace(b"/", b"+")
    name = np.frombuffer(raw, dtype=f"S{_ID_BYTES * 8 // 6}").astype(object)
    away = chance.random(jobs) < _MOVED_SHARE
    job = {
        "maker": np.full(jobs, node),
        "queue": queue,
        "name": name,
        "wait_ms": wait_ms,
        "run_ms": run_ms,
    }
    steps: list[tuple[str, Any, Any]] = [("imported", added + 2_000, away)]
    if at_home:
        steps = [
            ("added", added, fate >= 0),
            ("replicated", added + 900, fate >= 0),
            ("queued", added + 950, fate >= 0),
            ("exported", added + 1_500, away),
        ]
    else:
        added = added + 2_000
    delivered = added + 950 + wait_ms * 1000
    done = delivered + run_ms * 1000
    here = away != at_home
    failed, slow, expired = fate < 0.05, (fate >= 0.05) & (fate < 0.07), (fate >= 0.99) & here
    again = np.where(failed, done + 500, delivered + 60_000_000)
    later = [
        ("expired", added + 86_400_000, expired),
        ("delivered", delivered, fate < 0.99),
        ("nacked", done, failed),
        ("requeued-nack", done + 10, failed),
        ("requeued-retry", again, slow),
        ("delivered", again + 20_000, failed | slow),
        ("acked", np.where(failed | slow, again + 20_000 + run_ms * 1000, done), fate < 0.98),
    ]
    steps += [(kind, time, mask & here) for kind, time, mask in later]
    return _joined(steps, job)


def _joined(steps: list[tuple[str, Any, Any]], job: Columns) -> Columns:
    kinds = [np.full(int(mask.sum()), kind, dtype=object) for kind, _, mask in steps]
    columns = {name: np.concatenate([c[mask] for _, _, mask in steps]) for name, c in job.items()}
    columns["time"] = np.concatenate([time[mask] for _, time, mask in steps])
    columns["kind"] = np.concatenate(kinds)
    return columns


def _text(column: Any) -> Any:
    return pc.cast(pa.array(column), pa.string())


def _join(*parts: Any) -> Any:
    return pc.binary_join_element_wise(*parts, "")


_TAILS: Final[dict[str, Callable[[int, Columns], tuple[Any, ...]]]] = {
    "added": lambda node, part: (
        ',"messaging.client.id":"7","retry_s":60,"ttl_s":86400,"delay_s":0,"replicate":2',
    ),
    "replicated": lambda node, part: (',"copies":2',),
    "delivered": lambda node, part: (
        ',"messaging.client.id":"9","wait_ms":',
        _text(part["wait_ms"]),
    ),
    "acked": lambda node, part: (',"run_ms":', _text(part["run_ms"])),
    "nacked": lambda node, part: (',"run_ms":', _text(part["run_ms"])),
    "requeued-nack": lambda node, part: (',"reason":"nack"',),
    "requeued-retry": lambda node, part: (',"reason":"retry"',),
    "exported": lambda node, part: (f',"peer":"{NODES[(node + 1) % len(NODES)]}"',),
    "imported": lambda node, part: (f',"peer":"{NODES[node - 1]}"',),
}


def _write(folder: Path, node: int, first: int, part: Columns) -> None:
    lines: list[Any] = []
    places: list[Any] = []
    part = {**part, "seq": np.arange(first, first + len(part["time"]))}
    for kind in sorted(set(part["kind"])):
        place = np.flatnonzero(part["kind"] == kind)
        lines.append(_lines(node, kind, {name: column[place] for name, column in part.items()}))
        places.append(place)
    ordered = pa.concat_arrays(lines).take(pa.array(np.argsort(np.concatenate(places))))
    begun = np.datetime64(_BOOT_MS, "ms") + np.timedelta64(int(part["time"][0]), "us")
    day, hour = str(begun)[:10], str(begun)[11:13]
    name = f"events-{NODES[node][:8]}-{_BOOT_MS + node}-{first:012d}.jsonl.zst"
    path = folder / f"dt={day}" / f"hour={hour}" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    text = memoryview(ordered.buffers()[2])
    path.write_bytes(zstandard.ZstdCompressor(level=3).compress(text))


def _lines(node: int, kind: str, part: Columns) -> Any:
    """Lines of one kind."""
    moment = np.datetime64(_BOOT_MS, "ms") + part["time"].astype("timedelta64[us]")
    time = _text(np.datetime_as_string(moment, unit="us"))
    head = f'{{"specversion":"1.0","id":"{_BOOT_MS + node}.'
    subject = f'Z","type":"disque.job.{kind.partition("-")[0]}","subject":"D-'
    tail = _TAILS[kind](node, part) if kind in _TAILS else ()
    maker = pa.array([name[:8] + "-" for name in NODES]).take(pa.array(part["maker"]))
    return _join(
        *(
            head,
            _text(part["seq"]),
            f'","source":"disque:{NODES[node]}","time":"',
            time,
            subject,
            maker,
        ),
        *(pa.array(part["name"], pa.binary()).cast(pa.string()), '-05a1","messaging.system":'),
        *('"disque","messaging.destination.name":"queue-', _text(part["queue"])),
        '","messaging.message.body.size":120,"nacks":0,"additional_deliveries":0',
        *(*tail, "}\n"),
    )
