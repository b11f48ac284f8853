"""Scans of append only files."""

from __future__ import annotations

import io
import struct
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.cli.programs.aofscan import (
    ScanReport,
    next_good_record,
    pieces_for_original,
    scan,
)
from disque_tx.wire.files.aof import count_record, note_record

NODE0 = (Path(__file__).parents[2] / "vectors" / "aof" / "node0.aof").read_bytes()
JOB_ID = b"D-a267464b-WepcnCEsLGzTE3WERFhKyqDG-05a1"


def record(*args: bytes) -> bytes:
    return b"*%d\r\n" % len(args) + b"".join(b"$%d\r\n%b\r\n" % (len(a), a) for a in args)


def job(
    queue: bytes = b"q",
    body: bytes = b"b",
    nodes: int = 1,
    queue_length: int | None = None,
    body_length: int | None = None,
    node_count: int | None = None,
    surplus: int = 0,
) -> bytes:
    """A stored job, with wrong lengths if requested (cluster protocol, section 5)."""
    fixed = struct.pack("<40sBBHIQIIHH", JOB_ID, 2, 0, 1, 2**31, 1, 0, 300, 0, 0)
    parts = (
        fixed,
        struct.pack("<I", len(queue) if queue_length is None else queue_length),
        queue,
        struct.pack("<I", len(body) if body_length is None else body_length),
        body,
        struct.pack("<I", nodes if node_count is None else node_count),
        b"n" * 40 * nodes,
    )
    payload = b"".join(parts)
    return struct.pack("<I", len(payload) + surplus) + payload


def check(data: bytes) -> ScanReport:
    return scan(io.BytesIO(data), len(data), lambda done: None)


class ScanTests(SynchronousTestCase):
    """``scan``."""

    def test_real_file(self) -> None:
        """A complete file of a server is valid to its last byte."""
        report = check(NODE0)
        self.assertEqual(
            (len(NODE0), 0, 0, ""), (report.cut_at, report.damaged, report.foreign, report.problem)
        )

    @given(st.integers(0, len(NODE0)))
    def test_any_cut(self, size: int) -> None:
        """Wherever a file is truncated, the valid part ends with a record and is not damaged."""
        report = check(NODE0[:size])
        self.assertLessEqual(report.ok_up_to, size)
        self.assertEqual(report.ok_up_to, check(NODE0[: report.ok_up_to]).ok_up_to)
        self.assertEqual(0, report.damaged)

    @given(st.binary(max_size=60))
    def test_any_bytes(self, data: bytes) -> None:
        """Arbitrary bytes end the scan without an exception."""
        report = check(NODE0 + data)
        self.assertGreaterEqual(report.ok_up_to, len(NODE0))

    def test_huge_length(self) -> None:
        """A record that claims to have a terabyte uses no memory for it."""
        report = check(b"*2\r\n$7\r\nLOADJOB\r\n$1099511627776\r\nx")
        expected = f"0x{33:16x}: Expected to read 1099511627778 bytes, got 1 bytes"
        self.assertEqual(expected, report.problem)

    def test_wrong_prefix(self) -> None:
        """What stands in place of a record's beginning is shown as it is, or as a number where a
        terminal would not show it."""
        for byte, shown in (
            (b"A", "A"), (b" ", " "), (b"~", "~"), (b"\n", "\n"),
            (b"\x7f", "\\x7f"), (b"\x1f", "\\x1f"), (b"\xe9", "\\xe9"),
        ):  # fmt: skip
            expected = f"0x{0:16x}: Expected prefix '{shown}', got: '*'"
            self.assertEqual(expected, check(byte + b"1\r\n").problem)

    def test_good_job(self) -> None:
        """Queue, body and nodes of any size are valid when the lengths agree."""
        for good in (job(), job(b"", b"", 0), job(b"q" * 300, b"b" * 70000, 7)):
            self.assertEqual("", check(record(b"loadjob", good)).damage)

    def test_wrong_lengths(self) -> None:
        """Each length that does not agree with the rest is reported with the offset of its
        record."""
        before = record(b"DELJOB", JOB_ID)
        cases = {
            "beyond the end": [
                job(queue_length=2**32 - 1),
                job(body_length=1000),
                job(b"qq", b"", queue_length=1),
            ],
            "its parts make": [job(node_count=0), job(node_count=2**31)],
            "but the record holds": [job(surplus=1)],
            "smallest job": [b"short"],
        }
        for words, payloads in cases.items():
            for payload in payloads:
                report = check(before + record(b"LOADJOB", payload) + before)
                self.assertEqual(1, report.damaged)
                self.assertEqual(len(before), report.damage_at)
                self.assertEqual(len(before), report.cut_at)
                self.assertIn(words, report.damage)

    def test_argument_counts(self) -> None:
        """A record with too few or too many arguments is reported, because it cannot be loaded."""
        report = check(record(b"LOADJOB") + record(b"DELJOB", JOB_ID, JOB_ID))
        self.assertEqual(2, report.damaged)
        self.assertEqual("LOADJOB has 0 arguments instead of one", report.damage)
        for name in (b"NOTEJOB", b"HOLDKEY", b"FREEKEY", b"COUNTJOB", b"DELJOB", b"LOADJOB"):
            report = check(record(name, b"a", b"b"))
            self.assertEqual(f"{name.decode()} has 2 arguments instead of one", report.damage)

    def test_own_records(self) -> None:
        """Notes about jobs, which originals do not write, are whole."""
        report = check(note_record(JOB_ID, b"beanstalk", b"note"))
        self.assertEqual((0, "", 1), (report.damaged, report.damage, report.own))

    def test_contents(self) -> None:
        """What is in the records that only disque-tx writes is looked at, to its last byte."""
        good = [
            note_record(JOB_ID, b"beanstalk", b"note"),
            count_record(JOB_ID, 1, 2),
            record(b"FREEKEY", b"k" * 512),
            record(b"FREEKEY", b"k"),
        ]
        for data in good:
            found = check(data)
            self.assertEqual((0, "", 1), (found.damaged, found.damage, found.own), data)
        bad = {
            record(b"FREEKEY", b""): "a key of 0 bytes",
            record(b"FREEKEY", b"k" * 513): "a key of 513 bytes",
            record(b"HOLDKEY", b"key"): "3 bytes that are no key",
            record(b"HOLDKEY", b"k" * 1_025): "1025 bytes that are no key",
            record(b"NOTEJOB", b"note"): "4 bytes that are no note about a job",
        }
        for data, damage in bad.items():
            self.assertEqual(damage, check(data).damage)
        self.assertTrue(check(record(b"COUNTJOB", b"count")).damage)

    def test_words(self) -> None:
        """What ends the readable part of a log is said with its offset, in hexadecimal."""
        whole = record(b"DELJOB", JOB_ID)
        at = f"0x{len(whole):16x}: "
        cases = {
            b"x\r\n": at + "Expected prefix 'x', got: '*'",
            b"\x01\r\n": at + "Expected prefix '\\x01', got: '*'",
            b"*2\n": at + "Expected \\r\\n, got: 0a00",
            b"*1\r\n$-1\r\n": f"0x{len(whole) + 9:16x}: Expected a length, got: -1",
            b"*1\r\n$2\r\nabcd": f"0x{len(whole) + 8:16x}: Expected \\r\\n, got: 6364",
            b"*1\r\n$9\r\nabc": f"0x{len(whole) + 8:16x}: Expected to read 11 bytes, got 3 bytes",
            b"": "",
        }
        for rest, problem in cases.items():
            report = check(whole + rest)
            self.assertEqual((problem, len(whole)), (report.problem, report.ok_up_to), rest)

    def test_sizes(self) -> None:
        """A job of 84 bytes is the smallest one, and what a job says of itself is compared with
        what there is."""
        smallest = job(b"", b"", 0)
        self.assertEqual((84, ""), (len(smallest), check(record(b"LOADJOB", smallest)).damage))
        found = check(record(b"LOADJOB", smallest[:-1])).damage
        self.assertEqual("the job has 83 bytes, fewer than the smallest job (84)", found)
        size = len(job())
        found = check(record(b"LOADJOB", job(surplus=1))).damage
        self.assertEqual(
            f"the job says it has {size + 1} bytes, but the record holds {size}", found
        )
        found = check(record(b"LOADJOB", job(node_count=0))).damage
        self.assertEqual(f"the job says it has {size} bytes, but its parts make {size - 40}", found)
        found = check(record(b"LOADJOB", job(body_length=1_000))).damage
        expected = "the lengths of queue, body or nodes list reach beyond the end of the job"
        self.assertEqual(expected, found)

    def test_for_original(self) -> None:
        """An original gets all records that it can load, unchanged and in their order, however long
        they are."""
        large = record(b"LOADJOB", job(body=bytes(2 * 1024 * 1024 + 5)))
        kept = [record(b"LOADJOB", job()), large, record(b"DELJOB", JOB_ID), record(b"PING")]
        own = [count_record(JOB_ID, 1, 2), record(b"FREEKEY", b"k")]
        data = kept[0] + own[0] + kept[1] + own[1] + kept[2] + own[0] + kept[3]
        pieces = list(pieces_for_original(io.BytesIO(data), len(data)))
        self.assertEqual(b"".join(kept), b"".join(pieces))
        self.assertLessEqual(max(map(len, pieces)), 1024 * 1024)

    def test_foreign_records(self) -> None:
        """Commands that no server writes are counted."""
        self.assertEqual(2, check(record(b"PING") + b"*0\r\n").foreign)
        report = check(b"*\r\n" + record(b"PING"))
        self.assertEqual((2, ""), (report.foreign, report.problem))

    def test_progress(self) -> None:
        """The progress of scanning a large file is reported."""
        data = record(b"LOADJOB", job(body=bytes(3 * 1024 * 1024))) * 4
        reported: list[int] = []
        scan(io.BytesIO(data), len(data), reported.append)
        self.assertEqual([len(data) // 2, len(data)], reported)


class NextGoodRecordTests(SynchronousTestCase):
    """``next_good_record``."""

    def find(self, data: bytes, start: int) -> int | None:
        return next_good_record(io.BytesIO(data), len(data), start)

    def test_finds_records_after_garbage(self) -> None:
        """A valid record after a damaged one shows that the damage is not just a torn tail."""
        garbage = b"garbage" * 10
        self.assertEqual(len(garbage), self.find(garbage + record(b"DELJOB", JOB_ID), 0))

    def test_across_pieces(self) -> None:
        """A record across two chunks of the file is found."""
        for shift in range(20):
            garbage = bytes(1024 * 1024 - shift)
            data = garbage + record(b"LOADJOB", job())
            self.assertEqual(len(garbage), self.find(data, 0))

    def test_torn_and_damaged_records_do_not_count(self) -> None:
        """A truncated or inconsistent record is not a valid one."""
        good = record(b"LOADJOB", job())
        self.assertIsNone(self.find(b"x" + good[:-1], 0))
        self.assertIsNone(self.find(b"x" + record(b"LOADJOB", job(surplus=1)), 0))

    def test_not_before_the_start(self) -> None:
        """The search starts at the given offset."""
        self.assertIsNone(self.find(record(b"DELJOB", JOB_ID), 1))
