"""Events and rejected lines as rows of their tables."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc

from disque_tx.spark.pipeline.ingest.fields import RENAMED, SAME
from disque_tx.spark.pipeline.tables.events import event_schema, rejected_schema

_SCHEMA: Final = event_schema()
_REJECTED: Final = rejected_schema()
_REJECTED_ROWS_MAX: Final = 1_000
_NODE: Final = slice(len("disque:"), len("disque:") + 40)
#: What Java leaves as it is in the path of an address, beside letters, digits and all other than
#: ASCII.
_PLAIN: Final = "/-_.!~*'(),:;$&+=@"
_NOT_ASCII: Final = re.compile("([^\x00-\x7f]+)")


def event_rows(events: pa.Table) -> pa.Table:
    """Events with the columns of ``EVENTS_DDL`` as rows of the table of events."""
    numbers = pc.split_pattern(events["id"], ".")
    columns = {
        "node": pc.utf8_slice_codeunits(events["source"], _NODE.start, _NODE.stop),
        "boot": pc.list_element(numbers, 0).cast(pa.int64()),
        "seq": pc.list_element(numbers, 1).cast(pa.int64()),
        "time": events["time"],
        "kind": pc.list_element(pc.split_pattern(events["type"], "."), 2),
        "dt": events["time"].cast(pa.date32()),
    }
    columns |= {new: events[old] for old, new in RENAMED.items()}
    columns |= {name: events[name] for name in SAME}
    return pa.table([columns[name] for name in _SCHEMA.names], schema=_SCHEMA)


def rejected_rows(path: str, others: list[tuple[str, str]], batch: int) -> Iterator[pa.Table]:
    """Lines of a file that are not events, each with its reason, as rows of the table of rejected
    lines. ``batch``: the number of the ingest."""
    for first in range(0, len(others), _REJECTED_ROWS_MAX):
        reasons, lines = zip(*others[first : first + _REJECTED_ROWS_MAX], strict=True)
        same = [[_address(path)] * len(lines), [batch] * len(lines)]
        yield pa.table([same[0], list(reasons), list(lines), same[1]], schema=_REJECTED)


def _address(path: str) -> str:
    """A resolved path as Spark names the file of a row."""
    escaped = (quote(part, _PLAIN) if part.isascii() else part for part in _NOT_ASCII.split(path))
    return f"file:{''.join(escaped)}"
