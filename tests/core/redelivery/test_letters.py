"""The body of a dead letter, which workers and nodes write and read alike."""

from __future__ import annotations

import json

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.core.redelivery.letters import (
    is_letter,
    letter_body,
    letter_outline,
    letter_reason,
    read_letter,
)
from disque_tx.worker.deadletters import Letter
from tests.core.bench import ME, UNIX_S, make_job


class LetterBodyTests(SynchronousTestCase):
    """What a node writes."""

    def test_workers_read_it(self) -> None:
        """``disque dead`` and workers read the letters of nodes as they read their own."""
        job = make_job(1, queue=b"mail \xff")
        job.nacks, job.deliveries = 3, 2
        job.life_ms = 3_600_000
        body = letter_body(job, b"no route", ME, True, UNIX_S * 1_000_000)
        letter = Letter.decoded(body)
        self.assertEqual("mail \udcff", letter.queue)
        self.assertEqual((job.id.decode(), b"body"), (letter.id, letter.body))
        self.assertEqual(("no route", f"node {ME.decode()}"), (letter.reason, letter.worker))
        self.assertEqual((2, 2), (letter.nacks, letter.additional_deliveries))
        self.assertEqual(UNIX_S, letter.failed_at_s)
        self.assertEqual((300, 3_600, 1), (letter.retry_s, letter.ttl_s, letter.replicate))

    def test_counters_of_last_delivery(self) -> None:
        """Whatever the cause, the counters are those with which the job was delivered last."""
        job = make_job(1)
        job.deliveries = 4
        body = letter_body(job, b"", ME, False, 0)
        self.assertEqual(3, Letter.decoded(body).additional_deliveries)


class ReadLetterTests(SynchronousTestCase):
    """What a node reads."""

    def letter(self, **changes: object) -> bytes:
        """A letter of a worker, with these fields changed."""
        whole = Letter("q", "D-a", b"body", "reason", "", "w", 1, 2, 3.0, (), 60, 600, 2)
        return json.dumps({**json.loads(whole.encoded()), **changes}).encode()

    def test_worker_letter(self) -> None:
        """Letters of workers are unwrapped like those of nodes."""
        letter = read_letter(self.letter())
        assert letter is not None
        self.assertEqual((b"q", b"body"), (letter.queue, letter.body))
        self.assertEqual((60, 600, 2), (letter.retry_s, letter.ttl_s, letter.replicate))

    def test_is_letter(self) -> None:
        """Letters of both are known as such, and a job with other JSON is none."""
        mine = letter_body(make_job(1), b"", ME, True, 0)
        found = [is_letter(body) for body in (mine, self.letter(), b'{"a": 1}', b"{}")]
        self.assertEqual([True, True, False, False], found)

    def test_terms_from_id(self) -> None:
        """A letter of version 1 has no terms: a job that may be delivered once keeps that."""
        once = "D-aaaaaaaa-" + "0" * 24 + "-003c"
        body = self.letter(version=1, id=once, retry_s=None, ttl_s=None, replicate=None)
        letter = read_letter(body)
        assert letter is not None
        self.assertEqual((0, 3_600, 1), (letter.retry_s, letter.ttl_s, letter.replicate))

    def test_anything_else(self) -> None:
        """Whatever a stranger put into the queue, the node survives it and moves nothing."""
        bodies = [b"", b"text", b"{", b"[1]", b"{}", b"{" * 100_000, b'{"a":' * 50_000]
        bodies += [self.letter(version=9), self.letter(queue=1), self.letter(body="?")]
        bodies += [self.letter(queue="\ud800"), b"{\xff}"]
        self.assertEqual([None] * len(bodies), [read_letter(body) for body in bodies])

    def test_hostile_numbers(self) -> None:
        """Terms that no job can have do not count."""
        letter = read_letter(self.letter(retry_s=-1, ttl_s=2**70, replicate=True))
        assert letter is not None
        self.assertEqual((-1, 0, 0), (letter.retry_s, letter.ttl_s, letter.replicate))


class ReasonTests(SynchronousTestCase):
    """The reason is read by the way, for many letters."""

    def reason(self, body: bytes) -> bytes:
        return letter_reason(letter_outline(body))

    def test_body_is_skipped(self) -> None:
        """A letter about a job of any size is read as fast as any, and by its own reason, whatever
        that says."""
        job = make_job(1)
        job.body = b"x" * 5_000_000
        for reason in (b"timeout", b'"body": "', b'\\"body": "\\', b'{"version": 2}'):
            letter = letter_body(job, reason, ME, True, UNIX_S)
            self.assertLess(len(letter_outline(letter)), 1_000)
            self.assertEqual(reason, self.reason(letter))

    def test_not_utf8(self) -> None:
        """A reason whose bytes are not UTF-8 is found by these bytes, as it was given."""
        for reason in (b"caf\xe9", b"\xff\xfe", "\u00e4".encode()):
            letter = letter_body(make_job(1), reason, ME, True, UNIX_S)
            self.assertEqual(reason, self.reason(letter))
        foreign = b'{"version": 2, "reason": "\\ud800"}'
        self.assertEqual(b"\xed\xa0\x80", self.reason(foreign))

    def test_anything_else(self) -> None:
        """What is no letter has no reason, and neither has one that is made to be slow."""
        slow = b'{"version": 2, "reason": "x", "history": [' + b"0," * 500_000 + b"0]}"
        for body in (b"", b"x", b'{"version": 2', slow, b'{"version":' + b"[" * 60_000):
            self.assertEqual(b"", self.reason(body))
        self.assertEqual(b"x", self.reason(b'{"version":2,"body":"QQ==","reason":"x"}'))
        self.assertEqual(b"x", self.reason(b'{"version":2,"reason":"x","body": "\\"", "a": ""}'))
