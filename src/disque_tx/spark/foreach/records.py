"""What becomes of jobs with bodies that cannot be read: one bad job must not stop the others."""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from disque_tx.client.options import TLS
from disque_tx.spark.errors import BadColumn, BadOption, BadRecords
from disque_tx.spark.foreach.nack import disque_nack

_MODES: Final = ("fail", "dead-letter", "column")
_ERROR: Final = "error"


def good_records(
    rows: DataFrame,
    bad_records: str = "fail",
    *,
    servers: str | None = None,
    checkpoint: str | None = None,
    password: str | None = None,
    tls: TLS | None = None,
) -> DataFrame:
    """In ``foreachBatch``: the rows whose column ``error`` is null, as of
    :func:`~disque_tx.spark.bodies.from_disque_task`; without that column. What becomes of the
    others is ``bad_records``:

    - ``fail``: the query stops with the first of them in its message; nothing is acknowledged.
    - ``dead-letter``: they go back to their queue with the error as the reason, by
      :func:`disque_nack`, to which the other arguments belong; the policy of the queue makes dead
      letters of them.
    - ``column``: they stay, and so does the column.

    :raises BadRecords: with ``fail``, when there are some.
    :raises BadColumn: when there is no column ``error``, or no ``id``.
    :raises BadOption: another word, or with ``dead-letter`` no servers or no checkpoint.
    """
    if bad_records not in _MODES:
        raise BadOption(f"bad_records must be {', '.join(_MODES)}, not {bad_records!r}.")
    missing = {_ERROR, "id"}.difference(rows.columns)
    if missing:
        raise BadColumn(f"Bad records are named by 'id' and 'error'; {min(missing)!r} is missing.")
    if bad_records == "column":
        return rows
    bad = rows.where(fn.col(_ERROR).isNotNull())
    if bad_records == "fail":
        for row in bad.select("id", _ERROR).take(1):
            raise BadRecords(
                f"The body of {row.id} has {row.error}. Correct what adds such jobs, or read them"
                " with bad_records='dead-letter' or 'column'."
            )
    else:
        if servers is None or checkpoint is None:
            raise BadOption("With bad_records='dead-letter', give servers and checkpoint.")
        for (reason,) in bad.select(_ERROR).distinct().collect():
            some = bad.where(fn.col(_ERROR) == reason)
            disque_nack(
                some, reason, servers=servers, checkpoint=checkpoint, password=password, tls=tls
            )
    return rows.where(fn.col(_ERROR).isNull()).drop(_ERROR)
