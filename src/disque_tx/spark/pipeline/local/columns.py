"""The columns of the tables of ``lifecycle``, as both engines write them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import pyarrow as pa

from disque_tx.spark.pipeline.lifecycle.rules import (
    ADDED_WITH,
    COUNTED,
    ENDS,
    FIRST,
    SPANS,
    WINDOW_COUNTED,
    names,
)
from disque_tx.spark.schema import arrow_schema

#: Counts of a queue in a window.
COUNTS: Final = (*WINDOW_COUNTED, "redelivered", "begun", "ended")
RATES: Final = ("added", "delivered", "acked")
#: What is added up over the jobs of a queue.
SUMS: Final = (
    *("jobs", "backlog", *ENDS, "pending", "deliveries", "nacks", "retries", "moves"),
    *("redelivered_jobs", "bytes"),
)
_PERCENTILES: Final = tuple(name for span in SPANS for name in names(span))


def _ddl(columns: Iterable[str], kind: str) -> str:
    return ", ".join(f"{column} {kind}" for column in columns)


def _schema(*ddl: str) -> pa.Schema:
    return arrow_schema(", ".join(ddl))


SCHEMAS: Final = {
    "jobs": _schema(
        "job_id STRING, queue STRING, made_on STRING, size BIGINT",
        _ddl(ADDED_WITH, "BIGINT"),
        "asynchronous BOOLEAN",
        _ddl((*FIRST, "last_delivered_at", "first_event_at", "last_event_at"), "TIMESTAMP"),
        "final_at TIMESTAMP",
        _ddl((*COUNTED, "copies", "wait_ms", "run_ms", "total_ms"), "BIGINT"),
        "ended_at TIMESTAMP, began_at TIMESTAMP, nodes ARRAY<STRING>, outcome STRING",
    ),
    "queues": _schema(
        "queue STRING, window TIMESTAMP",
        _ddl(COUNTS, "BIGINT"),
        _ddl((f"{name}_per_s" for name in RATES), "DOUBLE"),
        _ddl((*_PERCENTILES, "backlog"), "BIGINT"),
    ),
    "distributions": _schema("queue STRING, measure STRING, value BIGINT, jobs BIGINT"),
    "totals": _schema("queue STRING", _ddl((*SUMS, "retry_s_min", *_PERCENTILES), "BIGINT")),
    "flow": _schema(
        "from_node STRING, to_node STRING, queue STRING, exported BIGINT, imported BIGINT"
    ),
    "clocks": _schema(
        "from_node STRING, to_node STRING", "ahead_ms_min DOUBLE, ahead_ms_max DOUBLE"
    ),
    "findings": _schema(
        _ddl(("finding", "queue", "job_id", "node", "peer"), "STRING"),
        "measured DOUBLE, bound DOUBLE, advice STRING",
    ),
}
