"""The log as bytes, against what the original wrote."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.errors import PeerError
from disque_tx.wire.aoflog import LogDecoder, LogEncoder, load_record
from disque_tx.wire.jobcodec import decode_stored
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
        """A record is taken exactly once."""
        encoder = LogEncoder()
        encoder.delete_job(b"D" * 40)
        encoder.take()
        self.assertEqual(0, encoder.size)
        self.assertEqual(b"", encoder.take())

    def test_single_record(self) -> None:
        """A snapshot is made of the same records."""
        words = decoded(log("node0"), 10_000)[0][0]
        self.assertEqual(log("node0")[:163], load_record(decode_stored(words[1])))


class DecoderTests(SynchronousTestCase):
    """Reading."""

    def test_offsets(self) -> None:
        """The offset after each record is where the next one starts, so that a cut or a message
        names the right place."""
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
        """The pieces a file is read in do not matter."""
        self.assertEqual(decoded(log("node0"), 10_000)[0], decoded(log("node0"), piece)[0])

    def test_every_cut(self) -> None:
        """A file that ends anywhere is short, not wrong, and the rest is counted."""
        data = log("node1")
        borders = [row["offset"] for row in rows("node1")] + [len(data)]
        for size in range(1, len(data)):
            decoder = decoded(data[:size], 10_000)[1]
            last = max(border for border in borders if border <= size)
            self.assertEqual((last, size - last), (decoder.offset, decoder.rest()))

    def test_lenient(self) -> None:
        """Headers may end in a bare LF and the end of a word is not looked at, as in the files the
        original accepts."""
        self.assertEqual([[b"A", b"bc"]], decoded(b"*2\n$1\nAXY$2\nbcZZ", 100)[0])

    def test_damage(self) -> None:
        """What no log holds is refused wherever it stands, with its place."""
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
        """Whatever is in a file is records, short or refused."""
        try:
            found, decoder = decoded(data, 7)
        except PeerError:
            return
        self.assertEqual(len(data), decoder.offset + decoder.rest())
        self.assertTrue(all(found))
