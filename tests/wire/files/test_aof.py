"""The encoding of the log, and the meaning of its records."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.errors import LocalError, PeerError
from disque_tx.messages.records import JobRecord
from disque_tx.wire.files.aof import (
    LogDecoder,
    LogEncoder,
    holds_records,
    load_record,
    parse_record,
)
from disque_tx.wire.jobs.codec import decode_stored, encode_stored
from tests.wire.logvectors import NAMES, log, rows


def decoded(data: bytes, piece: int) -> tuple[list[list[bytes]], LogDecoder]:
    """Every complete record of ``data`` fed in pieces, and the decoder."""
    decoder = LogDecoder()
    found = []
    for start in range(0, len(data), piece):
        decoder.feed(data[start : start + piece])
        while (words := decoder.next()) is not None:
            found.append(words)
    return found, decoder


class EncoderTests(SynchronousTestCase):
    """Writing."""

    def test_vectors(self) -> None:
        """Every record is written byte for byte as the original wrote it, in order."""
        for name in NAMES:
            encoder = LogEncoder()
            for command, argument in decoded(log(name), 10_000)[0]:
                if command == b"LOADJOB":
                    encoder.load_job(decode_stored(argument))
                else:
                    encoder.delete_job(argument)
            self.assertEqual(len(log(name)), encoder.size)
            self.assertEqual(log(name), encoder.take())

    def test_taken_once(self) -> None:
        """A record is returned exactly once."""
        encoder = LogEncoder()
        encoder.delete_job(b"D" * 40)
        encoder.take()
        self.assertEqual(0, encoder.size)
        self.assertEqual(b"", encoder.take())

    def test_impossible(self) -> None:
        """A job that cannot be written leaves nothing behind that would damage the log."""
        words = decoded(log("node0"), 10_000)[0][0]
        job = decode_stored(words[1])
        encoder = LogEncoder()
        encoder.load_job(job)
        whole = job.nodes
        job.nodes = (b"short",)
        self.assertRaises(LocalError, encoder.load_job, job)
        job.nodes = whole
        encoder.load_job(job)
        self.assertEqual(2 * log("node0")[:163], encoder.take())

    def test_single_record(self) -> None:
        """A snapshot consists of the same records."""
        words = decoded(log("node0"), 10_000)[0][0]
        self.assertEqual(log("node0")[:163], load_record(decode_stored(words[1])))


class DecoderTests(SynchronousTestCase):
    """Reading."""

    def test_offsets(self) -> None:
        """The offset after each record is where the next one starts, so that truncation and error
        messages are exact."""
        for name in NAMES:
            decoder = LogDecoder()
            decoder.feed(log(name))
            for row in rows(name):
                self.assertEqual(row["offset"], decoder.offset)
                words = decoder.next()
                assert words is not None
                self.assertEqual(row["command"].encode(), words[0])
                self.assertEqual(row["nargs"], len(words))
            self.assertEqual(len(log(name)), decoder.offset)
            self.assertEqual(0, decoder.rest())

    @given(st.integers(1, 400))
    def test_pieces(self, piece: int) -> None:
        """The sizes of the reads do not matter."""
        self.assertEqual(decoded(log("node0"), 10_000)[0], decoded(log("node0"), piece)[0])

    def test_every_cut(self) -> None:
        """A truncated file is incomplete, not damaged, and the remaining bytes are counted."""
        data = log("node1")
        borders = [row["offset"] for row in rows("node1")] + [len(data)]
        for size in range(1, len(data)):
            decoder = decoded(data[:size], 10_000)[1]
            last = max(border for border in borders if border <= size)
            self.assertEqual((last, size - last), (decoder.offset, decoder.rest()))

    def test_lenient(self) -> None:
        """Headers may end in a bare LF and the bytes after a string are not checked, as in files
        that the original accepts."""
        self.assertEqual([[b"A", b"bc"]], decoded(b"*2\n$1\nAXY$2\nbcZZ", 100)[0])

    def test_damage(self) -> None:
        """What cannot be in a log is refused wherever it is, with its offset."""
        for bad in (
            b"\0",
            b"\n",
            b"$1\r\n",
            b"*0\r\n",
            b"*-1\r\n",
            b"*17\r\n",
            b"*\r\n",
            b"*1x\r\n",
            b"*1\r\n*",
            b"*1\r\n$-1\r\n",
            b"*1\r\n$999999999\r\n",
            b"*1\r\n$9999999999999999999\r\n",
            b"*" + b"1" * 64,
        ):
            decoder = LogDecoder()
            decoder.feed(b"*1\r\n$1\r\nA\r\n" + bad)
            decoder.next()
            error = self.assertRaises(PeerError, decoder.next)
            self.assertIn("offset 11", str(error))

    @given(st.binary(max_size=100))
    def test_anything(self, data: bytes) -> None:
        """Any file consists of records, is incomplete, or is refused."""
        try:
            found, decoder = decoded(data, 7)
        except PeerError:
            return
        self.assertEqual(len(data), decoder.offset + decoder.rest())
        self.assertTrue(all(found))


_ID = b"D-dd329e4d-u44BwXsQEDeIyGZBgf/0tAt2-05a1"


class UnderstandTests(SynchronousTestCase):
    """One record."""

    def test_vectors(self) -> None:
        """Whatever the original wrote is a job, or the ID of a deleted one."""
        for name in NAMES:
            decoder = LogDecoder()
            decoder.feed(log(name))
            kinds = []
            while (words := decoder.next()) is not None:
                kinds.append("LOADJOB" if isinstance(parse_record(words), JobRecord) else "DELJOB")
            self.assertEqual([row["command"] for row in rows(name)], kinds)

    def test_names_in_any_case(self) -> None:
        """Other tools may write names in lower case, which the original accepts."""
        self.assertEqual(_ID, parse_record([b"deljob", _ID]))

    def test_refused(self) -> None:
        """The error names the defect, so that a person can examine that place of the file."""
        for words, text in (
            ([b"SET", b"a", b"b"], "unknown command b'SET'"),
            ([b"x" * 99], f"unknown command {b'x' * 40!r}"),
            ([b"DELJOB"], "DELJOB with 0 arguments instead of one"),
            ([b"loadjob", b"a", b"b"], "LOADJOB with 2 arguments instead of one"),
        ):
            with self.assertRaises(PeerError) as caught:
                parse_record(words)
            self.assertEqual(text, str(caught.exception))


class HoldsRecordsTests(SynchronousTestCase):
    """An incomplete record at the end may be cut off; records after a damaged one may not."""

    def test_torn_tail(self) -> None:
        """The end of a record, wherever the power failed, contains no other record."""
        record = _loadjob(b"body")
        for end in range(0, len(record), 7):
            self.assertFalse(holds_records(record[:end]))

    def test_records_behind(self) -> None:
        """Jobs and deletions after a damaged record are found, so that they are not discarded."""
        damaged = _loadjob(b"body")[:-20] + b"\r\n"
        for follower in (_loadjob(b"other"), _record(b"DELJOB", _ID)):
            self.assertTrue(holds_records(damaged + follower))

    def test_similar_to_records(self) -> None:
        """A body that looks like the start of a record, an invalid ID and bytes that are no job do
        not keep the tail from being cut."""
        for lookalike in (
            _record(b"DELJOB", b"no job ID"),
            _record(b"LOADJOB", b"no job"),
            b"*2\r\n$7\r\nLOADJOB\r\n$200\r\nunfinished",
            b"*2\r\n$6\r\nDELJOB\r\n$-5\r\n",
        ):
            self.assertFalse(holds_records(b"damaged\r\n" + lookalike), lookalike)

    def test_bounded(self) -> None:
        """However often a body repeats the start of a record, the search ends."""
        start = _record(b"DELJOB", b"no job ID")
        self.assertFalse(holds_records(b"\n" + start * 100 + _record(b"DELJOB", _ID)))
        self.assertTrue(holds_records(b"\n" + start * 99 + _record(b"DELJOB", _ID)))


def _record(*words: bytes) -> bytes:
    parts = [b"$%d\r\n%b\r\n" % (len(word), word) for word in words]
    return b"*%d\r\n" % len(words) + b"".join(parts)


def _loadjob(body: bytes) -> bytes:
    job = JobRecord(_ID, b"q", body, (b"n" * 40,), 1, 2, delay_s=0, retry_s=1, repl=1)
    return _record(b"LOADJOB", encode_stored(job))
