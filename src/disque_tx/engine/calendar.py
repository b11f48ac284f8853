"""Cron expressions in time zones, by cronsim and the time zone database.

Five fields, or six with seconds first; names of months and days; ``@hourly``, ``@daily``,
``@midnight``, ``@weekly``, ``@monthly``, ``@yearly``, ``@annually``.

Where summer time begins or ends, an expression whose minutes and hours both do not begin with
``*`` is due once: in an hour that is missing, when that hour would have begun; in one that comes
twice, the first time. All other expressions follow the clock on the wall: they are not due in a
missing hour, and twice in a doubled one. So does cron of Debian.
"""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from disque_tx.core.tables.calendar import NEVER, Calendar
from disque_tx.errors import CommandError

_FORMS: Final = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
#: Steps that may lead to a time that is not wanted: within a doubled hour.
_STEPS_MAX: Final = 10_000
_ZONE_BYTES_MAX: Final = 64
#: What the libraries raise for words that are no expression, or for times beyond all calendars.
_WRONG: Final = (CronSimError, ValueError, TypeError, AssertionError, OverflowError, OSError)


class CronCalendar(Calendar):
    """See the module."""

    def check(self, expression: bytes, zone: bytes, now_s: int) -> None:
        try:
            found = _zone(zone)
        except _WRONG + (KeyError,):
            shown = _shown(zone)
            raise CommandError("ERR", f"There is no time zone '{shown}'") from None
        text = _normal(expression)
        try:
            CronSim(text, datetime(2000, 1, 1, tzinfo=found))
        except _WRONG as error:
            why = str(error) if isinstance(error, CronSimError) else "it cannot be read"
            shown = _shown(expression)
            raise CommandError("ERR", f"'{shown}' is no cron expression: {why}") from None
        if self.after(expression, zone, now_s) == NEVER:
            shown = _shown(expression)
            raise CommandError("ERR", f"The cron expression '{shown}' is never due")

    def after(self, expression: bytes, zone: bytes, time_s: int) -> int:
        return _step(expression, zone, time_s, False)

    def before(self, expression: bytes, zone: bytes, time_s: int) -> int:
        return _step(expression, zone, time_s, True)


def _step(expression: bytes, zone: bytes, time_s: int, backwards: bool) -> int:
    try:
        start = datetime.fromtimestamp(time_s, _zone(zone))
        steps = CronSim(_normal(expression), start, reverse=backwards)
        for _ in range(_STEPS_MAX):
            found = int(next(steps).timestamp())
            if found < time_s if backwards else found > time_s:
                return found
    except _WRONG + (KeyError, StopIteration):
        pass
    return NEVER


@lru_cache(maxsize=1_000)
def _zone(name: bytes) -> tzinfo:
    if not name:
        return UTC
    if len(name) > _ZONE_BYTES_MAX:
        raise ValueError("too long")
    return ZoneInfo(name.decode("ascii"))


@lru_cache(maxsize=10_000)
def _normal(expression: bytes) -> str:
    """The expression in fields; with seconds only if these are not zero."""
    text = " ".join(expression.decode("latin-1").split())
    text = _FORMS.get(text.lower(), text)
    seconds, _, rest = text.partition(" ")
    return rest if seconds == "0" and len(rest.split()) == 5 else text


def _shown(word: bytes) -> str:
    text = word[:64].decode("latin-1")
    return "".join(letter if letter.isprintable() else "?" for letter in text)
