"""Bodies of jobs as typed columns."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any

from pyspark.sql import Row
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.integrations.celery import messages
from disque_tx.spark.bodies import from_dead_letter, from_disque_task
from disque_tx.text.letters import letter_bytes, letter_history
from disque_tx.worker.tasks.tasks import Queue
from tests.spark.shared import shared_session

_DJANGO = {
    "id": "d1",
    "task": "shop.tasks.pay",
    "backend": "default",
    "status": "READY",
    "args": [1],
    "kwargs": {"order": 7},
}
_DRAMATIQ = {"message_id": "m1", "actor_name": "pay", "args": [], "kwargs": {"order": 7}}


def pay(customer: int, order: int) -> None:
    """A task."""


def celery(body: bytes, encoding: str = "base64") -> bytes:
    """A message of Celery with this body."""
    message = {
        "body": b64encode(body).decode() if encoding == "base64" else body.decode(),
        "headers": {"task": "shop.pay", "id": "c1", "argsrepr": "()"},
        "properties": {"body_encoding": encoding, "priority": 0},
        "content-type": "application/json",
    }
    return messages.encoded(message)


class TaskTests(SynchronousTestCase):
    """``from_disque_task``."""

    def read(self, *bodies: bytes, kwargs: str | None = None) -> list[Row]:
        """The rows of these bodies."""
        jobs = [(str(number), bytearray(body)) for number, body in enumerate(bodies)]
        rows = shared_session().createDataFrame(jobs, "id STRING, body BINARY")
        return from_disque_task(rows, kwargs).orderBy("id").collect()

    def test_envelopes(self) -> None:
        """Each framework's bodies become the same columns."""
        call = b'[[1], {"order": 7}, {"callbacks": null}]'
        found = self.read(
            celery(call),
            celery(call, "utf-8"),
            json.dumps(_DJANGO).encode(),
            json.dumps(_DRAMATIQ).encode(),
            Queue("mail").job(pay)._body((1,), {"order": 7}, None),
            b'{"task":"pay"}',
        )
        self.assertEqual(
            [
                ("celery", "shop.pay", "c1", "[1]", '{"order":7}', None),
                ("celery", "shop.pay", "c1", "[1]", '{"order":7}', None),
                ("django", "shop.tasks.pay", "d1", "[1]", '{"order":7}', None),
                ("dramatiq", "pay", "m1", "[]", '{"order":7}', None),
                ("task", "pay", None, "[1]", '{"order":7}', None),
                ("task", "pay", None, "[]", "{}", None),
            ],
            [tuple(row)[2:] for row in found],
        )

    def test_typed(self) -> None:
        """Keyword arguments become a struct; those of another type are an error of their row."""
        good, wrong = self.read(
            b'{"task":"pay","kwargs":{"order":7,"total":1.5,"more":1}}',
            b'{"task":"pay","kwargs":{"order":"seven"}}',
            kwargs="order BIGINT, total DOUBLE",
        )
        self.assertEqual((7, 1.5, None), (*good.kwargs, good.error))
        self.assertEqual("keyword arguments that are not order BIGINT, total DOUBLE", wrong.error)

    def test_hostile(self) -> None:
        """A body of any bytes is a row with an error, and ends nothing."""
        bodies = [
            b"",
            b"\xff\x00",
            b"[]",
            b"7",
            b'{"a":1}',
            b'{"task":"x","args":"no"}',
            b"{" * 999,
        ]
        bodies += [celery(b"\x80\x04pickle"), b'{"headers":1,"properties":2,"body":3}']
        found = self.read(*bodies, kwargs="a BIGINT")
        self.assertEqual([], [row.body for row in found if row.error is None])


class LetterTests(SynchronousTestCase):
    """``from_dead_letter``."""

    def read(self, *bodies: bytes) -> list[Any]:
        """The letters in these bodies."""
        jobs = [(number, bytearray(body)) for number, body in enumerate(bodies)]
        rows = shared_session().createDataFrame(jobs, "id INT, body BINARY")
        return [row.letter for row in from_dead_letter(rows).orderBy("id").collect()]

    def test_letter(self) -> None:
        """A letter as nodes and workers write it becomes typed columns."""
        values = {
            "queue": "mail",
            "id": "D-1",
            "reason": "no address",
            "nacks": 2,
            "failed_at_s": 1_700_000_000.5,
            "history": letter_history([(1_700_000_000, "busy")]),
            "retry_s": 30,
            "ttl_s": 60,
            "replicate": 1,
        }
        (letter,) = self.read(letter_bytes(values, b"\0body"))
        self.assertEqual(
            ("mail", "D-1", bytearray(b"\0body"), "no address", None, None, 2, None),
            tuple(letter)[:8],
        )
        self.assertEqual(1_700_000_000.5, letter.failed_at.timestamp())
        ((at, reason),) = letter.history
        self.assertEqual((1_700_000_000, "busy"), (at.timestamp(), reason))
        self.assertEqual((30, 60, 1), tuple(letter)[-3:])

    def test_others(self) -> None:
        """Other bodies have no letter, and times that cannot be shown are null."""
        odd = letter_bytes({"queue": "q", "id": "D-1", "failed_at_s": 1e300, "history": []}, b"")
        none, text, letter = self.read(b"\xff", b'{"version":9,"id":"x"}', odd)
        self.assertEqual((None, None, None), (none, text, letter.failed_at))
