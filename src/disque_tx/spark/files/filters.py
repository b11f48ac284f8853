"""Conditions of a query that a source applies before Spark does, so that it reads less.

Spark passes conditions on to sources in Python only where
``spark.sql.python.filterPushdown.enabled`` is set, and refuses sources that expect them elsewhere;
so a source takes them with the option ``pushFilters``, from PySpark 4.1 on. Spark still checks
each row itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

import attrs

from disque_tx.spark import offered
from disque_tx.spark.options import FormatOptions

if TYPE_CHECKING or offered.FILTERS:
    from pyspark.sql.datasource import (
        EqualTo,
        Filter,
        GreaterThan,
        GreaterThanOrEqual,
        In,
        LessThan,
        LessThanOrEqual,
    )

#: The option of a format.
OPTION: Final = "pushFilters"


def filtering(options: FormatOptions) -> bool:
    """Whether conditions of queries are taken.

    :raises BadOption: when this PySpark passes none on.
    """
    wanted = options.boolean(OPTION, False)
    if wanted and not offered.FILTERS:
        raise options.invalid(OPTION, "false before PySpark 4.1, which passes no conditions on")
    return wanted


@attrs.frozen
class Conditions:
    """What all rows that are wanted have in common. ``values``: column → the only values of it.
    ``since``, ``until``: for the column ``time``, both included."""

    values: Mapping[str, frozenset[str]] = attrs.field(factory=dict)
    since: datetime | None = None
    until: datetime | None = None

    @classmethod
    def of(cls, filters: Iterable[Filter]) -> Conditions:
        """Take the filters that can be used; all of them hold for the wanted rows."""
        values: dict[str, frozenset[str]] = {}
        since: list[datetime] = []
        until: list[datetime] = []
        for one in filters:
            match one:
                case EqualTo((column,), str() as value):
                    values[column] = values.get(column, frozenset([value])) & {value}
                case In((column,), several) if all(isinstance(value, str) for value in several):
                    values[column] = values.get(column, frozenset(several)) & frozenset(several)
                case GreaterThan(("time",), datetime() as at) | GreaterThanOrEqual(
                    ("time",), datetime() as at
                ):
                    since.append(_utc(at))
                case LessThan(("time",), datetime() as at) | LessThanOrEqual(
                    ("time",), datetime() as at
                ):
                    until.append(_utc(at))
                case EqualTo(("time",), datetime() as at):
                    since.append(_utc(at))
                    until.append(_utc(at))
        return cls(values, max(since, default=None), min(until, default=None))

    def allow(self, column: str, value: str | None) -> bool:
        """Whether a row with this value may be wanted."""
        return column not in self.values or value in self.values[column]

    def allow_between(self, first: datetime, last: datetime) -> bool:
        """Whether rows with times from ``first`` to ``last`` may be wanted."""
        return (self.since is None or last >= self.since) and (
            self.until is None or first <= self.until
        )


def _utc(at: datetime) -> datetime:
    return at if at.tzinfo else at.replace(tzinfo=UTC)
