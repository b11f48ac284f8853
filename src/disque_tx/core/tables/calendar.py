"""When the occurrences of a schedule are: the interface, and what needs no calendar.

A node knows neither time zones nor cron expressions. What does is given to it.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64, mypyc_attr

from disque_tx.errors import CommandError

#: There is no such occurrence.
NEVER: Final = -1
#: Words of a schedule that recurs at equal intervals, before their number of seconds.
EVERY: Final = b"EVERY "
#: The longest interval, in seconds.
EVERY_S_MAX: Final = 366 * 86_400


@mypyc_attr(allow_interpreted_subclasses=True)
class Calendar:
    """Cron expressions in time zones. Times are whole seconds since 1970."""

    def check(self, expression: bytes, zone: bytes, now_s: int) -> None:
        """Raise ``CommandError`` for an expression that is none or that is never due after
        ``now_s``, and for a time zone that does not exist; an empty one is UTC."""
        raise CommandError("ERR", "This node cannot read cron expressions")

    def after(self, expression: bytes, zone: bytes, time_s: int) -> int:
        """The first occurrence later than ``time_s``, or :data:`NEVER`; that also for an expression
        or a zone that is not known here."""
        return NEVER

    def before(self, expression: bytes, zone: bytes, time_s: int) -> int:
        """The last occurrence earlier than ``time_s``, or :data:`NEVER`, as above."""
        return NEVER


class Recurrence:
    """The occurrences of one schedule. ``text``: a cron expression, or ``EVERY`` and seconds.
    ``start_s``: from which intervals are counted."""

    __slots__ = ("_every_s", "_start_s", "_text", "_zone")

    def __init__(self, text: bytes, zone: bytes, start_s: i64) -> None:
        self._text: bytes = text
        self._zone: bytes = zone
        self._start_s: i64 = start_s
        self._every_s: i64 = 0
        if text.startswith(EVERY):
            self._every_s = int(text[len(EVERY) :])

    def after(self, calendar: Calendar, time_s: i64) -> i64:
        """See :meth:`Calendar.after`."""
        if not self._every_s:
            return calendar.after(self._text, self._zone, time_s)
        if time_s < self._start_s:
            time_s = self._start_s
        return time_s + self._every_s - (time_s - self._start_s) % self._every_s

    def before(self, calendar: Calendar, time_s: i64) -> i64:
        """See :meth:`Calendar.before`."""
        if not self._every_s:
            return calendar.before(self._text, self._zone, time_s)
        found = time_s - 1 - (time_s - 1 - self._start_s) % self._every_s
        return found if found > self._start_s else NEVER
