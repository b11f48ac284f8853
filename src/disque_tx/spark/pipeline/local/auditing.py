"""``audit`` by DuckDB: the checks of :mod:`disque_tx.spark.pipeline.lifecycle.audit`."""

from __future__ import annotations

from collections import Counter
from typing import Final

from disque_tx.spark.pipeline.lifecycle.rules import ACKED, GRACE_S, LOST_US
from disque_tx.spark.pipeline.lifecycle.verdicts import UNKNOWN, VIOLATED, Audit, Suspect
from disque_tx.spark.pipeline.local import nodes, sql
from disque_tx.spark.pipeline.local.database import Database, database
from disque_tx.spark.pipeline.local.jobs import EventExtent, jobs
from disque_tx.spark.pipeline.tables.events import EventTableLog

_GRACE_US: Final = GRACE_S * 1_000_000
#: How many jobs each check found.
COUNTS: Final = "SELECT check_name, verdict, count(*) AS jobs FROM suspects GROUP BY ALL"
#: Numbers that are counted together.
_BLOCK_BITS: Final = 6


def audit(
    table: str, limit: int = 100, skew_ms: int = 1000, as_of: int | str | None = None
) -> Audit:
    """Check all jobs of a table. Arguments and errors are those of
    :func:`disque_tx.spark.pipeline.lifecycle.audit.audit`."""
    events = EventTableLog(table, as_of=as_of)
    with database(events.root) as rows:
        return audited(rows, events, limit, skew_ms)


def audited(rows: Database, events: EventTableLog, limit: int, skew_ms: int = 1000) -> Audit:
    """The same in a database that is there, in which tables are made for it."""
    rows.view("events", events.log.schema, events.root, events.log.files())
    extent = EventExtent.of(rows)
    for at, query in enumerate(jobs(extent)):
        rows.run(f"INSERT INTO jobs {query}" if at else f"CREATE TEMP TABLE jobs AS {query}")
    rows.run(f"CREATE TEMP TABLE gaps AS {_last_gaps()}")
    rows.run(f"CREATE TEMP TABLE suspects AS {_suspects(extent.horizon_us, skew_ms)}")
    counted = rows.rows(COUNTS)
    named = rows.rows(
        "SELECT check_name, verdict, job_id, queue FROM suspects QUALIFY row_number() OVER"
        f" (PARTITION BY check_name, verdict ORDER BY job_id) <= {limit} ORDER BY ALL"
    )
    ((count,),) = rows.rows("SELECT count(*) FROM jobs")
    counts = Counter({(check, verdict): number for check, verdict, number in counted})
    return Audit(count, dict(counts), [Suspect(*row) for row in named])


def _suspects(horizon_us: int, skew_ms: int) -> str:
    """Violations and possible ones: ``check_name``, ``verdict``, ``job_id``, ``queue``."""
    any_gap = "epoch_us(began_at) < (SELECT max(until_us) FROM gaps)"
    own_gap = "epoch_us(added_at) < until_us"
    rules = {
        "lost": (_lost(horizon_us), any_gap),
        "retry0-twice": ("retry_s = 0 AND deliveries > 1", "false"),
        "under-replicated": (_under_replicated(horizon_us), own_gap),
    }
    found = [
        f"SELECT '{check}' AS check_name,"
        f" CASE WHEN {doubt} THEN '{UNKNOWN}' ELSE '{VIOLATED}' END AS verdict, job_id, queue"
        f" FROM jobs LEFT JOIN gaps ON made_on = node WHERE {wrong}"
        for check, (wrong, doubt) in rules.items()
    ]
    found.append(
        f"SELECT 'delivered-after-ack', '{VIOLATED}', job_id, queue"
        f" FROM jobs SEMI JOIN ({_late(skew_ms)}) USING (job_id)"
    )
    return "\nUNION ALL ".join(found)


def _lost(horizon_us: int) -> str:
    delayed_us = f"epoch_us(began_at) + delay_s * 1000000 + {_GRACE_US}"
    return (
        "deliveries = 0 AND ended_at IS NULL AND began_at IS NOT NULL AND (outcome = 'lost'"
        f" OR (queued_at IS NULL AND requeues = 0 AND {delayed_us} < {horizon_us}))"
    )


def _under_replicated(horizon_us: int) -> str:
    """Asynchronous jobs have a minute; those that end earlier may have had no time for copies."""
    end = f"coalesce(epoch_us(ended_at), {horizon_us})"
    return (
        "replicate > copies AND CASE WHEN asynchronous"
        f" THEN epoch_us(added_at) + {_GRACE_US} < {end}"
        " ELSE coalesce(queued_at, first_delivered_at) IS NOT NULL END"
    )


def _late(skew_ms: int) -> str:
    """Jobs that were delivered after an acknowledgement: on one node by the numbers of its events,
    which do not depend on clocks."""
    return f"""
WITH candidates AS (
    SELECT job_id FROM jobs
    WHERE acks > 0 AND (deliveries > 1 OR last_delivered_at > acked_at)
),
relevant AS (
    SELECT job_id, node, boot, seq, epoch_us(time) AS at_us, kind FROM events
    SEMI JOIN candidates USING (job_id) WHERE {sql.kind_is(["delivered", *ACKED])}
),
ahead AS ({nodes.clocks()})
SELECT d.job_id FROM relevant AS d JOIN relevant AS a ON d.job_id = a.job_id
LEFT JOIN ahead ON from_node = a.node AND to_node = d.node
WHERE d.kind = 'delivered' AND a.kind <> 'delivered' AND CASE WHEN d.node = a.node
    THEN d.boot > a.boot OR (d.boot = a.boot AND d.seq > a.seq)
    ELSE d.at_us - a.at_us > greatest(ahead_ms_max, {skew_ms}) * 1000 END"""


def _last_gaps() -> str:
    """Per ``node`` until when events of it may be missing, ``until_us``."""
    return f"""
WITH numbered AS (
    SELECT node, boot, seq, epoch_us(time) AS at_us, seq >> {_BLOCK_BITS} AS block FROM events
),
blocks AS (
    SELECT node, boot, block, count(*) AS events, min(seq) AS first_seq, max(seq) AS last_seq,
        min(at_us) AS begin_us, max(at_us) AS end_us
    FROM numbered GROUP BY ALL
),
expected AS (
    SELECT *, coalesce(lag(last_seq) OVER (PARTITION BY node, boot ORDER BY block) + 1, 0) AS next
    FROM blocks
),
broken AS (
    SELECT node, seq, at_us,
        lag(seq) OVER (PARTITION BY node, boot, block ORDER BY seq) AS before
    FROM numbered SEMI JOIN (FROM blocks WHERE last_seq - first_seq + 1 > events)
        USING (node, boot, block)
),
runs AS (
    SELECT node, boot, arg_max(end_us, last_seq) AS end_us FROM blocks GROUP BY node, boot
),
ended AS (
    SELECT node, end_us, lead(boot) OVER (PARTITION BY node ORDER BY boot) AS later FROM runs
)
SELECT node, max(until_us) AS until_us FROM (
    SELECT node, begin_us AS until_us FROM expected WHERE first_seq > next
    UNION ALL SELECT node, at_us FROM broken WHERE seq > before + 1
    UNION ALL SELECT node, end_us + {LOST_US} FROM ended WHERE later IS NOT NULL
) GROUP BY node"""
