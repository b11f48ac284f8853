"""Events with everything that the engines compute something of, and tables of results as rows."""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any

from deltalake import DeltaTable

from tests.spark.pipeline.logs import Node, job_id, node_id

_KINDS = (
    *("added", "replicated", "queued", "delivered", "working", "nacked", "requeued", "delayed"),
    *("acked", "fast-acked", "dead", "dropped", "expired", "evicted", "deleted", "moved"),
    *("duplicate", "exported", "imported", "teleported"),
)
_REASONS = (None, "async", "retry", "nack", "command", "not-replicated", "peer")


def rows(path: str | Path) -> tuple[list[tuple[str, str]], list[tuple[Any, ...]]]:
    """The columns of a Delta table with their types, and its rows, sorted. Whether a column may
    lack values is a matter of the engine, and left out."""
    table = DeltaTable(str(path)).to_pyarrow_table()
    values = zip(*(column.to_pylist() for column in table.columns), strict=True)
    columns = [(f.name, str(f.type).replace(" not null", "")) for f in table.schema]
    return columns, sorted(map(_comparable, values), key=repr)


def _comparable(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(None if isinstance(value, float) and math.isnan(value) else value for value in row)


def anything(seed: int, letters: str, jobs: int) -> list[Node]:
    """Nodes that log any events about jobs in any order, with clocks that differ, gaps, restarts,
    and values that are missing."""
    chance = random.Random(seed)
    nodes = [Node(letter, boot, chance.uniform(-3, 3)) for letter in letters for boot in (1, 2)]
    for number in range(jobs):
        job = job_id(number, chance.choice(letters))
        queue = chance.choice(["mail", "sms", "größe", ""])
        at_s = chance.uniform(-3600, 2 * 86_400)
        retry_s = chance.choice([0, 5, 60])
        for _ in range(chance.choice([1, 3, 9])):
            at_s += chance.choice([0.001, 0.5, 40, 900])
            node = chance.choice(nodes)
            details = _details(chance, letters) | {"retry_s": chance.choice([retry_s, 0])}
            node.log(at_s, chance.choice(_KINDS), job, queue=queue, **details)
    for node in nodes:
        node.log(0, "paused", None, paused="in")
        del node.events[: chance.choice([0, 1])]
        del node.events[5 : 5 + chance.choice([0, 1, 80])]
    return [node for node in nodes if node.events]


def _details(chance: random.Random, letters: str) -> dict[str, Any]:
    given = {
        "reason": chance.choice(_REASONS),
        "peer": chance.choice([None, node_id(chance.choice(letters))]),
        "wait_ms": chance.choice([None, 0, 7, 1005, 123_456]),
        "run_ms": chance.choice([None, 3, 999, 10_049]),
        "ttl_s": chance.choice([None, 60, 86_400]),
        "delay_s": chance.choice([None, 0, 100]),
        "replicate": chance.choice([None, 1, 3]),
        "copies": chance.choice([None, 1, 2, 3]),
        "nacks": chance.choice([None, 0, 2]),
    }
    return {name: value for name, value in given.items() if value is not None}
