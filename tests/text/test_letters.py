"""Dead letters as JSON: the format, and reasons that are read by the way."""

from __future__ import annotations

import json

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.core.jobs.letters import letter_body
from disque_tx.text.letters import (
    NAMES,
    letter_bytes,
    letter_history,
    letter_members,
    letter_outline,
    letter_reason,
)
from disque_tx.worker import Letter
from tests.core.bench import ME, UNIX_S, make_job

#: A letter of a node and one of a worker, as versions before wrote them.
_OF_NODE = (
    b'{"version": 2, "queue": "mail \\udcff", "id": "D-aaaaaaaa-000000000000000000000001-05a1",'
    b' "body": "Ym9keQ==", "reason": "no \\"route\\" \\udce9", "traceback": "",'
    b' "worker": "node aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "nacks": 2,'
    b' "additional_deliveries": 2, "failed_at_s": 1795176084.000005, "history": [],'
    b' "retry_s": 300, "ttl_s": 3600, "replicate": 1}'
)
_OF_WORKER = (
    b'{"version": 2, "queue": "q \\udcff \\u00e9", "id": "D-a", "body": "Ym9kef8=",'
    b' "reason": "reason \\u00fc", "traceback": "trace\\n", "worker": "w", "nacks": 1,'
    b' "additional_deliveries": 2, "failed_at_s": 3.5, "history": [{"at_s": 1.0, "reason": "x"},'
    b' {"at_s": 2, "reason": "y"}], "retry_s": 60, "ttl_s": null, "replicate": 2}'
)


class FormatTests(SynchronousTestCase):
    """Letters live in clusters for weeks, and are read by nodes and workers of other versions."""

    def test_bytes_of_nodes(self) -> None:
        """What a node writes has not changed."""
        job = make_job(1, queue=b"mail \xff")
        job.nacks, job.deliveries = 3, 2
        job.life_ms = 3_600_000
        body = letter_body(job, b'no "route" \xe9', ME, True, UNIX_S * 1_000_000 + 5)
        self.assertEqual(_OF_NODE, body)

    def test_bytes_of_workers(self) -> None:
        """Neither has what a worker writes."""
        letter = Letter(
            *("q \udcff \u00e9", "D-a", b"body\xff", "reason \u00fc", "trace\n", "w", 1, 2, 3.5),
            history=((1.0, "x"), (2, "y")),
            retry_s=60,
            replicate=2,
        )
        self.assertEqual(_OF_WORKER, letter.encoded())

    def test_members(self) -> None:
        """What is read is what was written, and members of later versions do no harm."""
        for letter in (_OF_NODE, _OF_WORKER):
            members = letter_members(letter)
            self.assertEqual({"version", *NAMES}, set(members))
            self.assertEqual(letter, letter_bytes(members, members["body"]))
        later = letter_members(json.dumps({**json.loads(_OF_NODE), "colour": "red"}).encode())
        self.assertEqual("red", later["colour"])

    def test_no_letters(self) -> None:
        """Whatever else lies in a queue of dead letters is told apart from letters."""
        values = json.loads(_OF_WORKER)
        changes: list[dict[str, object]] = [{"version": 3}, {"queue": 1}, {"id": None}]
        changes += [{"body": 1}, {"body": "?"}, {"body": "\ud800"}]
        bodies = [json.dumps({**values, **change}).encode() for change in changes]
        bodies += [b"", b"[]", b"{}", b"null", b"\xff", b"{", b"[" * 100_000]
        for body in bodies:
            self.assertRaises(ValueError, letter_members, body)

    def test_history(self) -> None:
        """Earlier failures are listed with their times."""
        listed = [{"at_s": 1.0, "reason": "x"}]
        self.assertEqual((listed, []), (letter_history([(1.0, "x")]), letter_history([])))


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
