"""Service level objectives: which share of the jobs of some queues is delivered in time.

1. The wait of a job is that in queues, over all of its deliveries. It is late when that is longer
   than the limit.
2. A job that was never delivered is late as soon as it has been queued for longer than the limit,
   and when it expired. Otherwise it is not decided yet, and not counted.
3. A job counts for the step of time in which it was delivered first, or in which it became late.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction
from typing import Final

import attrs

from disque_tx.spark.errors import PipelineError
from disque_tx.spark.pipeline.local import sql
from disque_tx.spark.pipeline.report.axis import Axis
from disque_tx.spark.pipeline.report.queries import Queries
from disque_tx.spark.pipeline.report.spans import BadSpan, span_ms

_SHARE: Final = re.compile(r"[0-9]{1,3}(\.[0-9]{1,6})?")
#: Since when a job that was never delivered has been waiting.
_SINCE: Final = "coalesce(queued_at, began_at + to_seconds(coalesce(delay_s, 0)))"


class BadSlo(PipelineError):
    """A text is not a service level objective."""


@attrs.frozen
class Slo:
    """``pattern``: of the names of queues. ``percent``: of their jobs at least, as it was written.
    ``limit_ms``: the longest wait."""

    pattern: str
    percent: str
    limit_ms: int

    @classmethod
    def of(cls, text: str) -> Slo:
        """From ``PATTERN:99%:30s``.

        :raises BadSlo: when it is something else.
        """
        # The name of a queue may have colons.
        pattern, *more = text.rsplit(":", 2)
        percent = more[0].removesuffix("%").strip() if len(more) == 2 else ""
        if not pattern or not _SHARE.fullmatch(percent) or not more[0].strip().endswith("%"):
            raise BadSlo(_wrong(text, "PATTERN:SHARE%:SPAN is expected, such as 'mail*:99%:30s'"))
        if not 0 < float(percent) < 100:
            raise BadSlo(_wrong(text, "the share must be above 0 % and below 100 %"))
        try:
            return cls(pattern, percent, span_ms(more[1]))
        except BadSpan as error:
            raise BadSlo(_wrong(text, str(error).rstrip("."))) from error

    @property
    def allowed(self) -> Fraction:
        """The share of jobs that may be late."""
        return 1 - Fraction(self.percent) / 100


def _wrong(text: str, why: str) -> str:
    return f"{text!r} is not a service level objective: {why}."


@attrs.frozen
class Burn:
    """What became of an objective. ``jobs``: that are decided. ``below_s``: since when the share
    has been too low, without interruption until the end, since 1970; none if it is met now."""

    slo: Slo
    name: str
    jobs: int
    late: int
    below_s: int | None

    @property
    def is_met(self) -> bool:
        """Whether the share was reached over the whole period."""
        return self.late <= self.jobs * self.slo.allowed

    @property
    def reached_percent(self) -> float | None:
        """The share that was in time, rounded down, so that 100 means that all were."""
        return (self.jobs - self.late) * 100_000 // self.jobs / 1000 if self.jobs else None

    @property
    def rate(self) -> float:
        """How many times as many jobs were late as may be."""
        return float(Fraction(self.late, self.jobs) / self.slo.allowed) if self.jobs else 0.0


def burns(ask: Queries, axis: Axis, slos: Sequence[Slo], end_us: int) -> list[Burn]:
    """What became of objectives. ``end_us``: the end of the period, since 1970."""
    return [_burn(ask, axis, slo, f"slo-{at}", end_us) for at, slo in enumerate(slos, start=1)]


def _burn(ask: Queries, axis: Axis, slo: Slo, name: str, end_us: int) -> Burn:
    rows = ask.rows(
        name,
        f"Jobs of queues like {slo.pattern}, and those that were late, per step of time",
        _query(axis, slo, end_us),
    )
    jobs, late = sum(row["jobs"] for row in rows), sum(row["late"] for row in rows)
    below_s = None
    for row in reversed(rows):
        if row["late"] <= row["jobs"] * slo.allowed:
            break
        below_s = axis.at_s(row["step"])
    return Burn(slo, name, jobs, late, below_s)


def _query(axis: Axis, slo: Slo, end_us: int) -> str:
    limit = f"to_milliseconds({slo.limit_ms})"
    return f"""
WITH waiting AS (
    SELECT first_delivered_at, wait_ms, outcome, {_SINCE} AS since,
        coalesce(ended_at, {sql.moment(end_us)}) AS until
    FROM jobs
    WHERE {sql.is_like("queue", slo.pattern)} AND outcome <> 'duplicate'
),
decided AS (
    SELECT wait_ms > {slo.limit_ms} AS is_late, first_delivered_at, since FROM waiting
    WHERE first_delivered_at IS NOT NULL AND wait_ms IS NOT NULL
    UNION ALL
    SELECT true, NULL, since FROM waiting
    WHERE first_delivered_at IS NULL AND outcome <> 'acked' AND since IS NOT NULL
        AND (until > since + {limit} OR outcome = 'expired')
),
timed AS (
    SELECT is_late,
        CASE WHEN is_late THEN coalesce(since + {limit}, first_delivered_at)
            ELSE first_delivered_at END AS moment
    FROM decided
)
SELECT {axis.of("moment")} AS step,
    count(*) AS jobs, count(*) FILTER (is_late) AS late
FROM timed GROUP BY step ORDER BY step"""
