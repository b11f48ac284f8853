"""Adding a job once."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.client import AddedOnce, AddOptions, OptionUnknown
from disque_tx.client.errors import refusal
from disque_tx.client.requests.adding import add_job, add_once
from disque_tx.client.requests.replies import MalformedReply

_ID = "D-" + "0" * 38


class KeyTests(SynchronousTestCase):
    """ADDJOB UNIQUE."""

    def test_add_job(self) -> None:
        """A job with a key is added again when the answer is lost: there is one of it."""
        request = add_job("q", "b", unique="k", unique_for_s=60)
        self.assertEqual(("ADDJOB", b"q", b"b", 5000, "UNIQUE", b"k", "FOR", 60), request.words)
        self.assertTrue(request.repeatable)
        self.assertFalse(add_job("q", "b").repeatable)

    def test_add_once(self) -> None:
        """Programs get to know whether the job is new."""
        request = add_once("q", b"b", b"k\0", AddOptions(ttl_s=9, unique_for_s=5))
        words = ("ADDJOB", b"q", b"b", 5000, "TTL", 9, "UNIQUE", b"k\0", "FOR", 5, "WITHNEW")
        self.assertEqual(words, request.words)
        self.assertEqual(AddedOnce(_ID, True), request.parse([_ID.encode(), 1]))
        self.assertEqual(AddedOnce(_ID, False), request.parse([_ID.encode(), 0]))
        for wrong in ([_ID.encode()], [b"x", 1], [_ID.encode(), b"1"], _ID.encode()):
            with self.assertRaises(MalformedReply):
                request.parse(wrong)

    def test_for_without_key(self) -> None:
        """A mistake in a program is found before anything is sent."""
        with self.assertRaises(ValueError):
            add_job("q", "b", unique_for_s=60)

    def test_original(self) -> None:
        """An original refuses the option; the error says what is missing."""
        error = refusal("ADDJOB", "10.0.0.1:7711", "ERR syntax error")
        self.assertIsInstance(error, OptionUnknown)
        self.assertIn("nodes of disque-tx", str(error))
