"""The file of jobs that were queued at a stop, byte for byte, and what is said of damaged ones."""

from __future__ import annotations

import struct

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.errors import PeerError
from disque_tx.wire.files.queued import QueuedJobs, digest, parse, render

JOBS = [b"D-%038d" % number for number in range(3)]


def whole(data: bytes) -> bytes:
    """The file with this content, and the checksum that fits it."""
    return data + digest(data)


class QueuedFileTests(SynchronousTestCase):
    """What a stop writes, and the next start reads."""

    def test_bytes(self) -> None:
        """The bytes are those of the protocol, so that other versions understand them."""
        head = b"DISQUE QUEUED 1\n" + struct.pack(">Q16sQI", 7, b"h" * 16, 123, 3)
        self.assertEqual(whole(head + b"".join(JOBS)), render(QueuedJobs(7, b"h" * 16, 123, JOBS)))
        self.assertEqual(16, len(digest(b"")))

    def test_empty(self) -> None:
        """A list without jobs is one, and has the fewest bytes that one can have."""
        text = render(QueuedJobs(0, bytes(16), 0, []))
        self.assertEqual((68, []), (len(text), parse(text).ids))
        error = self.assertRaises(PeerError, parse, text[:-1])
        self.assertEqual("it has only 67 bytes", str(error))

    def test_damaged(self) -> None:
        """The reason says what is wrong."""
        last = 2**63 - 1
        for log_bytes, unix_ms in ((last, 1), (1, last)):
            head = struct.pack(">16sQ16sQI", b"DISQUE QUEUED 1\n", log_bytes, bytes(16), unix_ms, 0)
            found = parse(whole(head))
            self.assertEqual((log_bytes, unix_ms), (found.log_bytes, found.unix_ms))
        for magic, log_bytes, unix_ms, count, why in (
            (b"DISQUE QUEUED 2\n", 1, 1, 3, "it begins with something else, or is of a later"),
            (b"DISQUE QUEUED 1\n", last + 1, 1, 3, "3 jobs do not fit 188 bytes"),
            (b"DISQUE QUEUED 1\n", 1, last + 1, 3, "3 jobs do not fit 188 bytes"),
            (b"DISQUE QUEUED 1\n", 1, 1, 4, "4 jobs do not fit 188 bytes"),
        ):
            head = struct.pack(">16sQ16sQI", magic, log_bytes, bytes(16), unix_ms, count)
            error = self.assertRaises(PeerError, parse, whole(head + b"".join(JOBS)))
            self.assertTrue(str(error).startswith(why), str(error))
        text = render(QueuedJobs(1, bytes(16), 1, JOBS))
        error = self.assertRaises(PeerError, parse, text[:-1] + b"x")
        self.assertEqual("its checksum is wrong", str(error))
