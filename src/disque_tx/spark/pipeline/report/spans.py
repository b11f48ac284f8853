"""Spans of time, and the period that a report is about."""

from __future__ import annotations

import re
from typing import Final

import attrs

from disque_tx.spark.errors import PipelineError

_SPAN: Final = re.compile(r"([0-9]{1,6})(ms|s|min|h|d|w)")
_UNITS_MS: Final = {
    "ms": 1,
    "s": 1000,
    "min": 60_000,
    "h": 3_600_000,
    "d": 86_400_000,
    "w": 604_800_000,
}
_US_IN_MS: Final = 1000
_US_IN_S: Final = 1_000_000
#: Ten years.
_SPAN_MS_MAX: Final = 3_660 * 86_400_000


class BadSpan(PipelineError):
    """A text is not a span of time."""


@attrs.frozen
class Period:
    """Times in µs since 1970."""

    begin_us: int
    end_us: int

    @property
    def span_s(self) -> tuple[float, float]:
        """Begin and end, in seconds."""
        return self.begin_us / _US_IN_S, self.end_us / _US_IN_S

    def earlier(self, by_ms: int) -> Period:
        """A period of the same length, earlier by this time."""
        by_us = by_ms * _US_IN_MS
        return Period(self.begin_us - by_us, self.end_us - by_us)

    @classmethod
    def last(cls, end_us: int, span_ms: int) -> Period:
        """The period that ends at a time."""
        return cls(end_us - span_ms * _US_IN_MS, end_us)


def span_ms(text: str) -> int:
    """A span such as ``30s`` or ``7d``, in ms.

    :raises BadSpan: when it is none, or longer than ten years.
    """
    found = _SPAN.fullmatch(text.strip())
    value_ms = int(found[1]) * _UNITS_MS[found[2]] if found else 0
    if not 0 < value_ms <= _SPAN_MS_MAX:
        raise BadSpan(
            f"{text!r} is not a span of time. Use a number from 1 on and ms, s, min, h, d or w,"
            " such as 30s, 24h or 7d; ten years at most."
        )
    return value_ms
