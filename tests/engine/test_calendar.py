"""Cron expressions in time zones: when they are due, also where summer time begins and ends."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.core.tables.calendar import NEVER
from disque_tx.engine.calendar import CronCalendar
from disque_tx.errors import CommandError
from tests import profiles  # noqa: F401

BERLIN = b"Europe/Berlin"
NEW_YORK = b"America/New_York"
LORD_HOWE = b"Australia/Lord_Howe"


def unix_s(text: str) -> int:
    """The time of a date and time in UTC, as ``2026-03-29 00:59``."""
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())


class CalendarCase(SynchronousTestCase):
    """Times are written in UTC."""

    def setUp(self) -> None:
        self.calendar = CronCalendar()

    def times(self, expression: bytes, zone: bytes, start: str, count: int) -> list[str]:
        """The next occurrences, in UTC."""
        found: list[str] = []
        time_s = unix_s(start)
        while len(found) < count:
            time_s = self.calendar.after(expression, zone, time_s)
            found.append(datetime.fromtimestamp(time_s, UTC).strftime("%m-%d %H:%M:%S"))
        return found

    def refused(self, expression: bytes, zone: bytes = b"") -> str:
        """Why a client cannot use this."""
        now_s = unix_s("2026-01-01 00:00")
        error = self.assertRaises(CommandError, self.calendar.check, expression, zone, now_s)
        return str(error.text)


class FormTests(CalendarCase):
    """What can be written."""

    def test_forms(self) -> None:
        """Five fields, six fields, names, steps and the usual short forms mean what cron says."""
        start = "2026-01-01 00:00"
        for expression, first, second in (
            (b"*/5 * * * *", "01-01 00:05:00", "01-01 00:10:00"),
            (b"*/20 * * * * *", "01-01 00:00:20", "01-01 00:00:40"),
            (b"0 9 * feb mon-fri", "02-02 09:00:00", "02-03 09:00:00"),
            (b"30 8 L * *", "01-31 08:30:00", "02-28 08:30:00"),
            (b"@hourly", "01-01 01:00:00", "01-01 02:00:00"),
            (b"@daily", "01-02 00:00:00", "01-03 00:00:00"),
            (b"@Midnight", "01-02 00:00:00", "01-03 00:00:00"),
            (b"@weekly", "01-04 00:00:00", "01-11 00:00:00"),
            (b"@monthly", "02-01 00:00:00", "03-01 00:00:00"),
        ):
            self.assertEqual([first, second], self.times(expression, b"", start, 2), expression)
            self.calendar.check(expression, BERLIN, unix_s(start))
        self.assertEqual(["01-01 00:00:00"], self.times(b"@yearly", b"", start, 1))

    def test_refused(self) -> None:
        """What is no expression, or is never due, is refused with its reason."""
        for expression, why in (
            (b"", "Wrong number of fields"),
            (b"* * * *", "Wrong number of fields"),
            (b"60 * * * *", "Bad minute"),
            (b"* * * * * * *", "Wrong number of fields"),
            (b"* * 0 * *", "Bad day-of-month"),
            (b"* * * foo *", "Bad month"),
            (b"L/2,1 * * * *", "Bad minute"),
            (b"@reboot", "Wrong number of fields"),
            (b"0 0 30 2 *", "Bad day-of-month"),
            (b"* * */20 * 1L", "is never due"),
            (b"\n\0 \x1b * * *", "'?? ? * * *' is no cron expression"),
        ):
            self.assertIn(why, self.refused(expression), expression)

    def test_zones(self) -> None:
        """A zone that does not exist is refused; no file outside of the zones is ever read."""
        names = (
            b"Mars/Olympus",
            b"../../etc/passwd",
            b"/etc/passwd",
            b"Europe",
            b"\xff",
            b"x" * 99,
        )
        for zone in (*names, b"Europe/Berlin\0", b"\n", b"."):
            self.assertIn("There is no time zone", self.refused(b"* * * * *", zone))
            self.assertEqual(NEVER, self.calendar.after(b"* * * * *", zone, 0))

    def test_beyond_calendars(self) -> None:
        """A clock that is out of all bounds stops no node."""
        for time_s in (-(1 << 62), 1 << 40, 1 << 62):
            self.assertEqual(NEVER, self.calendar.after(b"* * * * *", BERLIN, time_s))

    @given(st.binary(max_size=40), st.integers(0, 4_000_000_000))
    def test_anything(self, expression: bytes, time_s: int) -> None:
        """Whatever a client sends, the answer is a later time, or that there is none."""
        found = CronCalendar().after(expression, BERLIN, time_s)
        self.assertTrue(found == NEVER or found > time_s)


class SummerTimeTests(CalendarCase):
    """Where an hour is missing, and where it comes twice."""

    def test_missing_hour(self) -> None:
        """What is due at a time in the missing hour is due when the hour would have begun."""
        for zone, start, first, second in (
            (BERLIN, "2026-03-28 12:00", "03-29 01:00:00", "03-30 00:30:00"),
            (NEW_YORK, "2026-03-07 12:00", "03-08 07:00:00", "03-09 06:30:00"),
            # Half an hour is missing: 02:30 is the first time that exists.
            (LORD_HOWE, "2026-10-03 00:00", "10-03 15:30:00", "10-04 15:30:00"),
        ):
            self.assertEqual([first, second], self.times(b"30 2 * * *", zone, start, 2), zone)
        found = self.times(b"10,40 2 * * *", LORD_HOWE, "2026-10-03 00:00", 3)
        self.assertEqual(["10-03 15:30:00", "10-03 15:40:00", "10-04 15:10:00"], found)

    def test_missing_hour_once(self) -> None:
        """Several times in the missing hour become one occurrence."""
        found = self.times(b"0,30 2 * * *", BERLIN, "2026-03-28 12:00", 2)
        self.assertEqual(["03-29 01:00:00", "03-30 00:00:00"], found)

    def test_doubled_hour(self) -> None:
        """What is due at a time in the doubled hour is due once, the first time."""
        for zone, expression, start, first, second in (
            (BERLIN, b"30 2 * * *", "2026-10-24 12:00", "10-25 00:30:00", "10-26 01:30:00"),
            (NEW_YORK, b"30 1 * * *", "2026-10-31 12:00", "11-01 05:30:00", "11-02 06:30:00"),
            # Half an hour comes twice, from 01:30 on.
            (LORD_HOWE, b"45 1 * * *", "2026-04-03 16:00", "04-04 14:45:00", "04-05 15:15:00"),
        ):
            self.assertEqual([first, second], self.times(expression, zone, start, 2), zone)

    def test_from_within_doubled_hour(self) -> None:
        """A node that begins in the second of two equal hours does not go back to the first."""
        found = self.times(b"30 2 * * *", BERLIN, "2026-10-25 01:15", 1)
        self.assertEqual(["10-26 01:30:00"], found)

    def test_every_minutes(self) -> None:
        """What is due every few minutes is due at equal intervals, whatever the clocks do."""
        for start in ("2026-03-29 00:30", "2026-10-25 00:30"):
            time_s = unix_s(start)
            for step in range(1, 13):
                found = self.calendar.after(b"*/15 * * * *", BERLIN, time_s + (step - 1) * 900)
                self.assertEqual(time_s + step * 900, found)

    def test_seconds(self) -> None:
        """Six fields with zero seconds mean the same as five."""
        found = self.times(b"0 30 2 * * *", BERLIN, "2026-03-28 12:00", 2)
        self.assertEqual(["03-29 01:00:00", "03-30 00:30:00"], found)

    def test_before(self) -> None:
        """The last of the occurrences that were missed is the one that was due last."""
        time_s = unix_s("2026-03-29 12:00")
        for expression in (b"30 2 * * *", b"*/7 * * * *", b"0 0 29 2 *", b"0,30 2 * * *"):
            found = self.calendar.before(expression, BERLIN, time_s)
            self.assertLess(found, time_s)
            self.assertGreaterEqual(self.calendar.after(expression, BERLIN, found), time_s)
