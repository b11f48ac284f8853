"""Retries and dead letters by error class: the reasons that workers gave when they gave jobs back,
without numbers, identifiers and addresses, as the console shows dead letters.

1. A return is a NACK, or the end of RETRY without an acknowledgement, which has a class of its own.
2. A job is a dead letter when it became one (``dead``), or would have become one, but its queue has
   no queue for them (``dropped``). It counts in each class in which it was returned; if it was
   returned in none, in that of the reason for its end.
"""

from __future__ import annotations

from typing import Final

from disque_tx.spark.pipeline.lifecycle.rules import FIRST
from disque_tx.spark.pipeline.local import sql
from disque_tx.spark.pipeline.local.database import Database
from disque_tx.spark.pipeline.report.queries import Queries, Row
from disque_tx.text.similar import similar

CLASSES_MAX: Final = 20
UNANSWERED: Final = "not acknowledged within RETRY"
UNKNOWN: Final = "no reason given"
#: How a person who runs the query gets the function in it.
FUNCTION: Final = """\
import duckdb
from disque_tx.text.similar import similar

connection = duckdb.connect()
connection.create_function("similar", lambda note: similar(note), ["VARCHAR"], "VARCHAR")
connection.execute(VIEWS)
print(connection.sql(QUERY))"""
_DEAD: Final = sql.kind_is(FIRST["dead_at"])


def returns(rows: Database, ask: Queries) -> list[Row]:
    """The classes with the most returns: ``error``, ``returns``, ``jobs``, ``dead``, ``queue`` (the
    one with the most returns) and ``last_us``, since 1970. The view ``events`` is read."""
    rows.connection.create_function("similar", _similar, ["VARCHAR"], "VARCHAR")
    return ask.rows("errors", "Returns and dead letters by error class", _QUERY)


def _similar(note: str) -> str:
    # Compiled functions have no signature that DuckDB can look at.
    return similar(note)


_QUERY: Final = f"""
WITH ended AS (SELECT DISTINCT job_id FROM events WHERE {_DEAD}),
returned AS (
    SELECT job_id, queue, epoch_us(time) AS at_us, 1 AS returns,
        CASE WHEN kind = 'nacked' THEN coalesce(nullif(similar(note), ''), '{UNKNOWN}')
            ELSE '{UNANSWERED}' END AS error
    FROM events
    WHERE kind = 'nacked' OR (kind IN ('requeued', 'delayed') AND reason = 'retry')
),
unexplained AS (
    SELECT job_id, queue, epoch_us(time) AS at_us, 0 AS returns,
        coalesce(nullif(similar(note), ''), '{UNKNOWN}') AS error
    FROM events ANTI JOIN returned USING (job_id) WHERE {_DEAD}
),
by_job AS (
    SELECT error, queue, job_id, sum(returns) AS returns, max(at_us) AS last_us
    FROM (FROM returned UNION ALL FROM unexplained) GROUP BY ALL
),
by_queue AS (
    SELECT error, queue, sum(returns) AS returns, count(*) AS jobs,
        count(ended.job_id) AS dead, max(last_us) AS last_us
    FROM by_job LEFT JOIN ended USING (job_id) GROUP BY error, queue
)
SELECT error, sum(returns)::BIGINT AS returns, sum(jobs)::BIGINT AS jobs,
    sum(dead)::BIGINT AS dead,
    arg_max(queue, (returns, queue)) AS queue, max(last_us) AS last_us
FROM by_queue GROUP BY error ORDER BY returns DESC, dead DESC, error LIMIT {CLASSES_MAX}"""
