"""The body of a dead letter, which workers and nodes write and read alike."""

from __future__ import annotations

import json

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.core.jobs.letters import is_letter, letter_body, read_letter
from disque_tx.worker.settling.deadletters import Letter
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
