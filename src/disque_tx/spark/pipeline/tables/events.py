"""Tables of events, as far as no rows of them are read: what every engine has in common."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import pyarrow as pa

from disque_tx.spark.errors import BadTable
from disque_tx.spark.paths import check_apart, exists, files_below, is_absent, resolved
from disque_tx.spark.pipeline.tables.deltalog import DeltaLog
from disque_tx.spark.pipeline.tables.runs import Runs
from disque_tx.spark.schema import arrow_schema
from disque_tx.text.counts import counted

EVENTS: Final = "events"
#: The columns of the table of events except ``dt``, by which it is partitioned.
EVENT_COLUMNS: Final = """\
node STRING, boot BIGINT, seq BIGINT, time TIMESTAMP, kind STRING, job_id STRING, queue STRING,
size BIGINT, nacks BIGINT, additional_deliveries BIGINT, wait_ms BIGINT, run_ms BIGINT,
client_id STRING, retry_s BIGINT, ttl_s BIGINT, delay_s BIGINT, replicate BIGINT, copies BIGINT,
reason STRING, backoff_ms BIGINT, note STRING, successor STRING, schedule STRING,
occurrence_s BIGINT, peer STRING, paused STRING, jobs BIGINT, body STRING, body_sha256 STRING"""
_REJECTED_COLUMNS: Final = "file STRING, reason STRING, line STRING, batch BIGINT"
_REJECTED: Final = "_rejected"
_FORMER: Final = "_commits"
_DAY_FIELD: Final = pa.field("dt", pa.date32())


class EventTableLog:
    """The log of the table of events at ``path``.

    ``create``: whether to create the table in an empty or missing folder. ``as_of``: a version, or
    a time in ISO 8601, at which it is looked at. ``inputs``: resolved paths that are read.

    :raises BadTable: when it is not a table of events, has no such version or not all its files
        any more, or has the layout of an earlier version of this program.
    :raises OutputOverlaps: when a new table would be in an input, or around one.
    """

    def __init__(
        self,
        path: str,
        create: bool = False,
        as_of: int | str | None = None,
        inputs: Iterable[str] = (),
    ) -> None:
        self.root = resolved(path)
        log = DeltaLog.find(self.root, as_of)
        if log is None:
            check_apart(self.root, inputs)
            _check_absent(self.root, create)
            log = DeltaLog.create(self.root, event_schema(), EVENTS, ("dt",))
        self.log = log
        if as_of is not None:
            _check_kept(log, as_of)
        if self.log.what != EVENTS:
            raise BadTable(
                f"{self.root} is a Delta table, but not one of 'disque-pipeline ingest'."
            )
        if create:
            self.log.add_columns(event_schema())

    def noted(self) -> tuple[Runs, Mapping[str, list[int]]] | None:
        """The numbers of the events that were ever added, and the files that names say nothing
        about: path → size and time of change in ms. Nothing, if no commit says it, as after the
        creation of the table, or when the commits of a month were all made by other programs."""
        notes = self.log.notes()
        return None if notes is None else (Runs.from_notes(notes["runs"]), notes["files"])

    def rejected(self) -> DeltaLog | None:
        """The log of the table of rejected lines, if there were any."""
        root = f"{self.root}/{_REJECTED}"
        return DeltaLog.find(root)

    def create_rejected(self) -> DeltaLog:
        """The same log; the table is created if it does not exist."""
        root = f"{self.root}/{_REJECTED}"
        return DeltaLog.create(root, rejected_schema(), "rejected lines", ("batch",))


def event_schema() -> pa.Schema:
    """The columns of a table of events."""
    return arrow_schema(EVENT_COLUMNS.replace("\n", " ")).append(_DAY_FIELD)


def rejected_schema() -> pa.Schema:
    """The columns of the table of rejected lines: ``file``, ``reason`` (``torn``: not JSON, or
    values of wrong types; ``foreign``: not an event), ``line``, and the number of the ingest."""
    return arrow_schema(_REJECTED_COLUMNS)


def is_table(path: str) -> bool:
    """Whether there is a table in this folder."""
    return DeltaLog.exists(resolved(path))


def is_former(root: str) -> bool:
    """Whether there is a table of the former layout at a resolved path."""
    return exists(f"{root}/{_FORMER}")


def _check_kept(log: DeltaLog, as_of: int | str) -> None:
    there = {name for name, _ in files_below(log.root)}
    gone = sum(file.path not in there for file in log.files())
    if gone:
        raise BadTable(
            f"{log.root} cannot be read as of {as_of} any more: 'disque-pipeline vacuum', say, has"
            f" removed {counted(gone, 'file')} of that version. Look at a later one, of those that"
            " 'disque-pipeline history' lists."
        )


def _check_absent(root: str, create: bool) -> None:
    if is_former(root):
        raise BadTable(
            f"{root} is a table of an earlier version. 'disque-pipeline convert {root}' makes a"
            " Delta table of it, without writing its events again."
        )
    empty = is_absent(root)
    if not create or not empty:
        what = "does not exist or is empty" if empty else "is not a table of events"
        raise BadTable(f"{root} {what}. 'disque-pipeline ingest' creates one, in a new folder.")
