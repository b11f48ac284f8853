"""Requests about schedules: their words, and their values."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.client.options import AddOptions
from disque_tx.client.requests import schedules
from disque_tx.client.requests.replies import MalformedReply
from disque_tx.client.requests.schedules import Schedule

ROW: list[Any] = [
    *(b"name", b"night", b"when", b"0 3 * * *", b"zone", b"Europe/Berlin", b"missed", b"one"),
    *(b"state", b"paused", b"queue", b"q\xff", b"body", b"\xff", b"options", [b"TTL", b"60"]),
    *(b"last", 0, b"next", [86_400, 172_800], b"node", b"a" * 40, b"error", b"NOREPL no"),
]


class WordsTests(SynchronousTestCase):
    """What is sent."""

    def test_words(self) -> None:
        """Every option has its word, and nothing is sent that was not asked for."""
        options = AddOptions(ttl_s=60, retry_s=5, asynchronous=True)
        for request, words in (
            (
                schedules.schedule_set("s", "@daily", "q", "ü"),
                ("SCHEDULE", "SET", b"s", "@daily", "QUEUE", b"q", "ü".encode()),
            ),
            (
                schedules.schedule_set(b"s", 30, "q", b"", tz="UTC", missed="all", options=options),
                (
                    *("SCHEDULE", "SET", b"s", "EVERY", 30, "TZ", "UTC", "MISSED", "all"),
                    *("QUEUE", b"q", b"", "RETRY", 5, "TTL", 60, "ASYNC"),
                ),
            ),
            (schedules.schedule_list(), ("SCHEDULE", "LIST")),
            (schedules.schedule_get("s"), ("SCHEDULE", "GET", b"s")),
            (schedules.schedule_del("s"), ("SCHEDULE", "DEL", b"s")),
            (schedules.schedule_repair(), ("SCHEDULE", "REPAIR")),
            (schedules.schedule_pause("s"), ("SCHEDULE", "PAUSE", b"s")),
            (schedules.schedule_resume("s"), ("SCHEDULE", "RESUME", b"s")),
            (schedules.schedule_skip("s"), ("SCHEDULE", "SKIP", b"s")),
            (schedules.schedule_run("s"), ("SCHEDULE", "RUN", b"s")),
        ):
            self.assertEqual(words, request.words)

    def test_not_repeated(self) -> None:
        """A job that was perhaps added by hand is not added a second time, and nothing is changed
        twice: only questions may be."""
        for request, repeatable in (
            (schedules.schedule_set("s", "@daily", "q", "b"), False),
            (schedules.schedule_list(), True),
            (schedules.schedule_get("s"), True),
            (schedules.schedule_del("s"), False),
            (schedules.schedule_repair(), False),
            (schedules.schedule_pause("s"), False),
            (schedules.schedule_resume("s"), False),
            (schedules.schedule_skip("s"), False),  # it would leave out one more
            (schedules.schedule_run("s"), False),
        ):
            self.assertEqual((repeatable, 0.0), (request.repeatable, request.wait_s))


class ReplyTests(SynchronousTestCase):
    """What comes back."""

    def test_schedule(self) -> None:
        """Times are times, whichever version of RESP is in use."""
        expected = Schedule(
            *("night", "0 3 * * *", "Europe/Berlin", "one", True, "q\udcff", b"\xff"),
            options=("TTL", "60"),
            last=None,
            next=(datetime(1970, 1, 2, tzinfo=UTC), datetime(1970, 1, 3, tzinfo=UTC)),
            node="a" * 40,
            error="NOREPL no",
        )
        mapped = dict(zip(ROW[::2], ROW[1::2], strict=True))
        for reply in (ROW, mapped):
            self.assertEqual(expected, schedules.schedule_get("s").parse(reply))
            self.assertEqual([expected], schedules.schedule_list().parse([reply]))
        self.assertIs(True, schedules.schedule_del("s").parse(1))
        self.assertIs(False, schedules.schedule_del("s").parse(0))
        self.assertEqual("D-x", schedules.schedule_run("s").parse(b"D-x"))
        skipped = schedules.schedule_skip("s").parse(86_400)
        self.assertEqual(datetime(1970, 1, 2, tzinfo=UTC), skipped)

    def test_malformed(self) -> None:
        """A reply that is none of SCHEDULE's is an error, not half a schedule."""
        far = [1 << 62 if one == 0 else one for one in ROW]
        for reply in ([], b"x", ROW[2:], far, None):
            with self.assertRaises(MalformedReply):
                schedules.schedule_get("s").parse(reply)
