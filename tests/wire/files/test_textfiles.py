"""The text files beside the nodes file, byte for byte, and what is said of damaged ones."""

from __future__ import annotations

from collections.abc import Callable

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.errors import PeerError
from disque_tx.messages.tables import Register
from disque_tx.wire.files import history, pauses, tables
from disque_tx.wire.files.tables import POLICIES, SCHEDULES, checksum

ME = b"a" * 40
TORN = "its checksum is wrong or missing: it was not written to its end"
LATER = "it begins with something else, or is of a later version"


def whole(text: bytes) -> bytes:
    """The file with these lines, and the checksum that fits them."""
    return text + b"checksum " + checksum(text) + b"\n"


class TextCase(SynchronousTestCase):
    """Files that are read back, or not."""

    def refused(self, parse: Callable[[bytes], object], text: bytes) -> str:
        """What is said of a file that cannot be used."""
        return str(self.assertRaises(PeerError, parse, text))


class HistoryTests(TextCase):
    """What happened at a node."""

    title = b"# What happened at a node of disque-tx.\nversion 1\n"

    def test_lines(self) -> None:
        """People can read the file, and what a node writes it reads, whatever the words hold."""
        actions = [
            (1_700_000_000_123, b"PAUSE", b"10.0.0.1:5 \xff", b'a "b"\n', b"", -1),
            (5, b"QFLUSH", b"", b"", b"NOPERM no", 10**18 - 1),
        ]
        records = [(b"", 7, [b"", b"\1\2", b"\xff" * 4]), (b"q x", 0, [b"", b"", b""])]
        text = history.render(actions, records)
        lines = text.splitlines()
        self.assertEqual(
            [
                b"# What happened at a node of disque-tx.",
                b"version 1",
                b'action 1700000000123 "PAUSE" "10.0.0.1:5 \\xff" "a \\"b\\"\\n" "" -1',
                b'action 5 "QFLUSH" "" "" "NOPERM no" 999999999999999999',
                b'record 7 "" "" "AQI=" "/////w=="',
                b'record 0 "q x" "" "" ""',
            ],
            lines[:-1],
        )
        self.assertEqual((actions, records), history.parse(text))

    def test_weight(self) -> None:
        """A weight with more digits than a reader takes becomes the greatest that it takes."""
        text = history.render([], [(b"q", 10**18, [b"", b"", b""])])
        self.assertEqual(10**18 - 1, history.parse(text)[1][0][1])

    def test_damaged(self) -> None:
        """The reason says what is wrong, and in which line of the file."""
        good = b'record 0 "q" "" "" ""\n'
        self.assertEqual(([], [(b"q", 0, [b""] * 3)]), history.parse(whole(self.title + good)))
        for line in (
            b'record 0 "q" "" ""\n',
            b'record 0 "q" "" "" "" ""\n',
            b'record x "q" "" "" ""\n',
            b'record 1234567890123456789 "q" "" "" ""\n',
            b'record 0 "q" "" "" "A"\n',
            b'record 0 "q "" "" ""\n',
            b"record 0\n",
            b'action 0 "a" "b" "c" "d"\n',
            b'action 0 "a" "b" "c" "d" x\n',
            b'action 0 "a" "b" "c" "d" --1\n',
            b'other 0 "a" "b" "c" "d" 1\n',
        ):
            text = whole(self.title + good + b"\n" + line)
            self.assertEqual("line 5 is not one of its kinds", self.refused(history.parse, text))
        text = whole(self.title + good)
        for wrong, why in (
            (text.replace(b"version 1", b"version 2"), LATER),
            (b"", LATER),
            (text[:-1], TORN),
            (text + b"\n", TORN),
            (self.title + good, TORN),
            (text.replace(b"record 0", b"record 1"), TORN),
        ):
            self.assertEqual(why, self.refused(history.parse, wrong))


class PausesTests(TextCase):
    """Queues that PAUSE paused."""

    title = b"# Queues paused by PAUSE at a node of disque-tx.\nversion 1\n"

    def test_lines(self) -> None:
        """People can read the file, and a node reads what it wrote."""
        rows = [(b"q", 1, b"10.0.0.1:5 ann", 1_800_000_000), (b"a\n", 3, b"", 0)]
        text = pauses.render(rows)
        self.assertEqual(
            whole(self.title + b'pause 1 1800000000 "q" "10.0.0.1:5 ann"\npause 3 0 "a\\n" ""\n'),
            text,
        )
        self.assertEqual(rows, pauses.parse(text))

    def test_damaged(self) -> None:
        """The reason says what is wrong, and in which line of the file."""
        good = b'pause 2 1 "q" ""\n'
        kind, time = "line 4 is not one of its kinds", "line 4 has no time"
        for line, why in (
            (b'pause 0 1 "q" ""\n', kind),
            (b'pause 4 1 "q" ""\n', kind),
            (b'other 1 1 "q" ""\n', kind),
            (b'pause 1 1 "q"\n', kind),
            (b'pause 1 1 "q" "" ""\n', kind),
            (b'pause 1 1 "q" "\n', kind),
            (b'pause 1 -1 "q" ""\n', time),
            (b'pause 1 1234567890123456789 "q" ""\n', time),
        ):
            text = whole(self.title + good + line)
            self.assertEqual(why, self.refused(pauses.parse, text), line)
        longest = whole(self.title + b'pause 1 123456789012345678 "q" ""\n')
        self.assertEqual([(b"q", 1, b"", 123_456_789_012_345_678)], pauses.parse(longest))
        for wrong, why in ((b"", LATER), (self.title + good, TORN), (longest[:-1], TORN)):
            self.assertEqual(why, self.refused(pauses.parse, wrong))


class TablesTests(TextCase):
    """Policies and schedules."""

    def test_whole(self) -> None:
        """The file says how it is to be changed, and holds each register on a line."""
        there = [
            Register(b"q", b"ttl", b"60", 2, ME, generation=4),
            Register(b"r", b"ttl", b"", 3, ME, 9),
        ]
        self.assertEqual(
            whole(
                b"# Schedules of a cluster of disque-tx, written by the node: change them by"
                b" SCHEDULE.\nversion 2\ncounter 7 4\n"
                + b'set 2 %s "q" "ttl" "60" 4\ndel 3 %s "r" "ttl" 9\n'
                % (ME, ME)
            ),
            tables.render(there, 7, SCHEDULES, 4),
        )
        self.assertTrue(
            tables.render([], 0).startswith(
                b"# Policies of a cluster of disque-tx, written by the node: change them by"
                b" QPOLICY.\nversion 1\ncounter 0\n"
            )
        )

    def test_damaged(self) -> None:
        """The reason says what is wrong, and in which line of the file."""
        title = tables.render([], 0).split(b"\n")[0] + b"\n"
        good = b'set 2 %s "q" "ttl" "60"\n' % ME
        bad = "line 4 is not one of its kinds"
        for line in (
            good[:-1] + b" 1 1\n",
            b'set 2 %s "q" "ttl"\n' % ME,
            b'get 2 %s "q" "ttl" "60"\n' % ME,
            b'set 2 %s "q" "ttl" "60"\n' % ME[1:],
            b'set x %s "q" "ttl" "60"\n' % ME,
            b'set 1234567890123456789 %s "q" "ttl" "60"\n' % ME,
            b'set 2 %s "q" "ttl" "60" x\n' % ME,
            b'del 2 %s "q" "ttl" x\n' % ME,
            b'set 2 %s "q "ttl" "60"\n' % ME,
            b"counter 1 2 3\n",
            b"counter\n",
            b"counter -1\n",
        ):
            text = whole(title + b"version 1\n" + good + line)
            self.assertEqual(bad, self.refused(tables.parse, text), line)
        for version in (b"3", b"1234567890123456789"):
            text = whole(title + b"version " + version + b"\n")
            self.assertEqual(
                "a later version of disque-tx has written it", self.refused(tables.parse, text)
            )
        text = whole(title + good)
        self.assertEqual("it is no file of schedules", self.refused(_schedules, text))
        self.assertEqual(TORN, self.refused(tables.parse, text[:-1]))

    def test_counters(self) -> None:
        """Comments, empty lines and a counter are no registers; without a counter it is 0."""
        title = tables.render([], 0).split(b"\n")[0] + b"\n"
        text = whole(title + b"version 2\ncounter 9 3\n# why\n\n")
        self.assertEqual(([], 3, 9), tables.parse(text, POLICIES))
        self.assertEqual(([], 0, 0), tables.parse(whole(title + b"version 1\n"), POLICIES))


def _schedules(text: bytes) -> object:
    """The file read as one of schedules."""
    return tables.parse(text, SCHEDULES)
