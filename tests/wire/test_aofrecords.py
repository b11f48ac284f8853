"""What records of the log mean, and whether records lie behind a damaged place."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.errors import PeerError
from disque_tx.messages import JobRecord
from disque_tx.wire.aoflog import LogDecoder
from disque_tx.wire.aofrecords import holds_records, understand
from disque_tx.wire.jobcodec import encode_stored
from tests.wire.logvectors import NAMES, log, rows

_ID = b"D-dd329e4d-u44BwXsQEDeIyGZBgf/0tAt2-05a1"


class UnderstandTests(SynchronousTestCase):
    """One record."""

    def test_vectors(self) -> None:
        """Whatever the original wrote is a job, or the ID of one that is gone."""
        for name in NAMES:
            decoder = LogDecoder()
            decoder.feed(log(name))
            kinds = []
            while (words := decoder.next()) is not None:
                kinds.append("LOADJOB" if isinstance(understand(words), JobRecord) else "DELJOB")
            self.assertEqual([row["command"] for row in rows(name)], kinds)

    def test_names_in_any_case(self) -> None:
        """Tools of others may write names in small letters; the original reads them."""
        self.assertEqual(_ID, understand([b"deljob", _ID]))

    def test_refused(self) -> None:
        """The message names what is wrong, so that a person can look at that place of the file."""
        for words, text in (
            ([b"SET", b"a", b"b"], "unknown command b'SET'"),
            ([b"x" * 99], f"unknown command {b'x' * 40!r}"),
            ([b"DELJOB"], "DELJOB with 0 arguments instead of one"),
            ([b"loadjob", b"a", b"b"], "LOADJOB with 2 arguments instead of one"),
        ):
            with self.assertRaises(PeerError) as caught:
                understand(words)
            self.assertEqual(text, str(caught.exception))


class HoldsRecordsTests(SynchronousTestCase):
    """An unfinished record at the end may be cut off; what lies behind a damaged one may not."""

    def test_torn_tail(self) -> None:
        """The end of a record, cut wherever the power failed, holds no other record."""
        record = _loadjob(b"body")
        for end in range(0, len(record), 7):
            self.assertFalse(holds_records(record[:end]))

    def test_records_behind(self) -> None:
        """Jobs and deletions behind a damaged record are found: nobody may throw them away."""
        damaged = _loadjob(b"body")[:-20] + b"\r\n"
        for follower in (_loadjob(b"other"), _record(b"DELJOB", _ID)):
            self.assertTrue(holds_records(damaged + follower))

    def test_similar_to_records(self) -> None:
        """A body that looks like the start of a record, an ID that is none and bytes that are no
        job do not keep the tail from being cut."""
        for lookalike in (
            _record(b"DELJOB", b"no job ID"),
            _record(b"LOADJOB", b"no job"),
            b"*2\r\n$7\r\nLOADJOB\r\n$200\r\nunfinished",
            b"*2\r\n$6\r\nDELJOB\r\n$-5\r\n",
        ):
            self.assertFalse(holds_records(b"damaged\r\n" + lookalike), lookalike)

    def test_bounded(self) -> None:
        """However often a body repeats the start of a record, looking through it has an end."""
        start = _record(b"DELJOB", b"no job ID")
        self.assertFalse(holds_records(b"\n" + start * 100 + _record(b"DELJOB", _ID)))
        self.assertTrue(holds_records(b"\n" + start * 99 + _record(b"DELJOB", _ID)))


def _record(*words: bytes) -> bytes:
    parts = [b"$%d\r\n%b\r\n" % (len(word), word) for word in words]
    return b"*%d\r\n" % len(words) + b"".join(parts)


def _loadjob(body: bytes) -> bytes:
    job = JobRecord(_ID, b"q", body, (b"n" * 40,), 1, 2, 0, 1, 1)
    return _record(b"LOADJOB", encode_stored(job))
