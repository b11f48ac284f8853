"""Replies as values."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.commands.base.values import Error, Status, ValueReplies
from disque_tx.messages.records import JobRecord

JOB_ID = b"D-dcb833cf-8YL1NT17e9+wsA/09NqxscQI-05a1"


class ValueRepliesTests(SynchronousTestCase):
    """Replies as Python values for embedding programs."""

    def test_nested(self) -> None:
        """Announced sizes become lists and dictionaries, however deep."""
        replies = ValueReplies()
        replies.array(3)
        replies.integer(1)
        replies.mapping(1)
        replies.bulk(b"key")
        replies.array(0)
        replies.null()
        replies.status(b"OK")
        self.assertEqual([[1, {b"key": []}, None], Status(b"OK")], replies.values)
        replies.clear()
        self.assertEqual([], replies.values)

    def test_incomplete(self) -> None:
        """A reply becomes visible when its last element was written, not before."""
        replies = ValueReplies()
        replies.integer(1)
        replies.array(2)
        replies.null_array()
        self.assertEqual([1], replies.values)
        replies.error(b"ERR x")
        self.assertEqual([1, [None, Error(b"ERR x")]], replies.values)

    def test_rewind(self) -> None:
        """Suppressed replies leave no trace, earlier ones stay."""
        replies = ValueReplies()
        replies.integer(1)
        mark = replies.mark()
        replies.array(1)
        replies.rewind(mark)
        self.assertEqual([1], replies.values)

    def test_jobs(self) -> None:
        """Jobs have the form of a GETJOB reply."""
        job = JobRecord(JOB_ID, b"q", b"body", (b"n",), 1, 2, delay_s=0, retry_s=1, repl=1)
        job.nacks, job.deliveries = 3, 4
        replies = ValueReplies()
        replies.jobs([job], False)
        replies.jobs([job], True)
        short = [b"q", JOB_ID, b"body"]
        counters = [b"nacks", 3, b"additional-deliveries", 4]
        self.assertEqual([[short], [short + counters]], replies.values)

    def test_words_are_not_data(self) -> None:
        """A status, an error and a string with the same bytes are three different replies."""
        self.assertNotEqual(Status(b"OK"), Error(b"OK"))
        self.assertNotEqual(Status(b"OK"), b"OK")
        self.assertEqual(3, len({Status(b"OK"), Error(b"OK"), b"OK"}))
        self.assertEqual("Status(b'OK') Error(b'OK')", f"{Status(b'OK')} {Error(b'OK')}")
