"""What a job asks for, as people read it."""

from __future__ import annotations

import json
import pickle
import zlib
from base64 import b64encode
from typing import Any

import attrs
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.protocols.http.api.jobs.arguments import BODY_BYTES_MAX, read, trace_id
from disque_tx.worker.settling.deadletters import Letter
from tests.protocols.http.api.queues.test_queues import SlicedCase, letter
from tests.protocols.http.httpbench import request


def kombu(body: bytes, kind: str = "application/json") -> bytes:
    """A message of Celery, as kombu writes it."""
    message = {
        "body": b64encode(body).decode(), "content-encoding": "utf-8", "content-type": kind,
        "headers": {"task": "shop.pay", "id": "4711", "retries": 2},
        "properties": {"body_encoding": "base64", "delivery_tag": "x", "delivery_info": {}},
    }  # fmt: skip
    return json.dumps(message).encode()


class Bomb:
    """What must never be read as a pickle."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (exec, ("raise SystemExit('a pickle was run')",))


class EnvelopeTests(SynchronousTestCase):
    """The envelopes of task queues."""

    def call(self, body: bytes) -> tuple[Any, ...]:
        """Envelope, task, arguments."""
        found = read(body)
        return tuple(found.get(name) for name in ("envelope", "task", "args", "kwargs"))

    def test_celery(self) -> None:
        """Celery puts the task into headers, and the arguments into a body of Base64."""
        body = kombu(json.dumps([[4711], {"currency": "EUR"}, {"callbacks": None}]).encode())
        expected = ("celery", "shop.pay", [4711], {"currency": "EUR"})
        self.assertEqual(expected, self.call(body))
        self.assertEqual({"id": "4711", "retries": 2}, read(body)["options"])

    def test_others(self) -> None:
        """dramatiq, Django and the workers of Disque name theirs in other ways."""
        call = {"args": [1], "kwargs": {"a": 2}}
        for envelope, values in (
            ("dramatiq", {"actor_name": "pay", "message_id": "x", "queue_name": "q", **call}),
            ("django", {"task": "pay", "backend": "default", "status": "READY", **call}),
            ("task", {"task": "pay", **call}),
        ):  # fmt: skip
            body = json.dumps(values).encode()
            self.assertEqual((envelope, "pay", [1], {"a": 2}), self.call(body))

    def test_dead_letter(self) -> None:
        """Of a dead letter one wants to know what its job was."""
        dead = attrs.evolve(Letter.decoded(letter("down")), body=b'{"task": "pay", "args": [1]}')
        self.assertEqual(("task", "pay", [1], {}), self.call(dead.encoded()))

    def test_pickle(self) -> None:
        """A pickle is listed and never run, compressed as RQ does it, within Celery, or alone."""
        data = pickle.dumps(Bomb())
        for body in (data, zlib.compress(data)):
            found = read(body)
            self.assertEqual("pickle", found["envelope"])
            self.assertTrue(any("SystemExit" in one for one in found["opcodes"]), found)
            self.assertIn("REDUCE", found["opcodes"])
        found = read(kombu(data, "application/x-python-serialize"))
        self.assertEqual(("celery", "shop.pay"), (found["envelope"], found["task"]))
        self.assertIn("REDUCE", found["opcodes"])

    def test_messagepack(self) -> None:
        """Celery's arguments in MessagePack are read, and so is a body of it, with an envelope or
        without; an empty map is no pickle of which nothing is known."""
        args = b"\x93\x92\xcd\x12\x67\xc3\x81\xa8currency\xa3EUR\x80"
        found = self.call(kombu(args, "application/x-msgpack"))
        self.assertEqual(("celery", "shop.pay", [4711, True], {"currency": "EUR"}), found)
        self.assertEqual(
            ("task", "pay", [1], {}), self.call(b"\x82\xa4task\xa3pay\xa4args\x91\x01")
        )
        self.assertEqual(
            {"envelope": "msgpack", "value": [1, {"a": None}]}, read(b"\x92\x01\x81\xa1a\xc0")
        )
        broken = read(kombu(args[:-1], "application/x-msgpack"))
        self.assertEqual(
            ("celery", "shop.pay", []), tuple(broken[n] for n in ("envelope", "task", "args"))
        )

    def test_trace(self) -> None:
        """The trace of whoever added a job is in its call, in Celery's headers, or in dramatiq's
        options; what has not the form of one is none."""
        parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
        member = {"traceparent": parent}
        celery = json.loads(kombu(b"[[], {}, {}]"))
        celery["headers"].update(member)
        dramatiq = {"actor_name": "pay", "args": [], "kwargs": {}, "message_id": "m"}
        for values in ({"task": "pay", **member}, celery, {**dramatiq, "options": member}):
            found = read(json.dumps(values).encode())
            self.assertEqual("4bf92f3577b34da6a3ce929d0e0e4736", trace_id(found), values)
        for wrong in (
            parent.upper(), f"{parent}-1", parent[:-1], f"ff{parent[2:]}", 1, [parent], "",
            f"00-{'0' * 32}-00f067aa0ba902b7-01",
        ):  # fmt: skip
            found = read(json.dumps({"task": "pay", "traceparent": wrong}).encode())
            self.assertEqual("", trace_id(found), wrong)
        self.assertEqual("", trace_id(read(json.dumps(member).encode())))

    def test_long_numbers(self) -> None:
        """Of a number with more digits than anybody reads it is said that it is long: writing it
        out would take the node's time."""
        for number, shown in (
            ((1 << 64) - 1, str((1 << 64) - 1)),
            (1 << 64, "(a long number)"),
            (-(1 << 64), "(a long number)"),
        ):
            self.assertIn(f"LONG1 {shown}", read(pickle.dumps(number))["opcodes"])

    def test_long_texts(self) -> None:
        """Of a long text its beginning is shown."""
        for value in ("begin" + "x" * 10_000 + "end", b"begin" + b"x" * 10_000 + b"end"):
            (shown,) = [one for one in read(pickle.dumps(value))["opcodes"] if "x" * 9 in one]
            self.assertIn("'begin", shown)
            self.assertLess(len(shown), 1_000)

    def test_hostile(self) -> None:
        """Whatever a body is, it is read in no time, or not at all."""
        many = pickle.dumps(list(range(10_000)))
        self.assertLess(len(read(many)["opcodes"]), 400)
        self.assertEqual("(damaged from here on)", read(b"\x80\x04\x8c\xff")["opcodes"][-1])
        bomb = zlib.compress(b"\x80\x04" + bytes(50_000_000))
        self.assertLess(len(read(bomb)["opcodes"]), 400)
        for body in (
            b"", b"\x78nonsense", b"plain", b"[" * 60_000, b'"text"', b"[1]", b'{"a": 1}',
            b'{"headers": {}, "properties": {}}', b'{"task": 1}', b'{"version": 2}',
            b'{"headers": {"task": "t"}, "properties": {"body_encoding": "base64"}, "body": "!"}',
        ):  # fmt: skip
            self.assertIn(read(body)["envelope"], ("none", "json", "celery"), body)


class RouteTests(SlicedCase):
    """The operation."""

    def place(self, body: bytes) -> str:
        """Of a job with this body."""
        self.call(b"ADDJOB", b"q", body, b"0")
        ((job),) = self.slow("GET", "/api/v1/queues/q/peek?from=newest").json["jobs"][:1]
        return f"{job['url']}/arguments"

    def test_read(self) -> None:
        """Task and arguments of a job that is there."""
        answer = self.slow("GET", self.place(b'{"task": "pay", "args": [1]}')).json
        self.assertEqual(
            ("task", "pay", [1]), tuple(answer[n] for n in ("envelope", "task", "args"))
        )
        gone = "D-dcb833cf-8YL1NT17e9+wsA/09NqxscQI-05a1".replace("/", "%2F").replace("+", "%2B")
        self.problem(404, "NOJOB", self.slow("GET", f"/api/v1/jobs/{gone}/arguments"))

    def test_trace(self) -> None:
        """A job of a trace names it, with where it can be seen once the node knows that."""
        trace = "4bf92f3577b34da6a3ce929d0e0e4736"
        place = self.place(
            b'{"task": "pay", "traceparent": "00-%s-00f067aa0ba902b7-01"}' % trace.encode()
        )
        answer = self.slow("GET", place).json
        self.assertEqual((trace, None), (answer["trace_id"], answer.get("trace_url")))
        self.call(b"CONFIG", b"SET", b"trace-url", b"https://t.example/{trace_id}?q={trace_id}")
        answer = self.slow("GET", place).json
        self.assertEqual(f"https://t.example/{trace}?q={trace}", answer["trace_url"])
        self.assertNotIn("trace_id", self.slow("GET", self.place(b'{"task": "pay"}')).json)

    def test_slices(self) -> None:
        """A body that takes time to read is read in a turn of its own, so that nobody else waits
        for several of them; a short one is read at once."""
        for arguments, at_once in ((b"", True), (b"x" * (BODY_BYTES_MAX - 40), False)):
            place = self.place(b'{"task": "pay", "args": ["%s"]}' % arguments)
            channel, transport = self.connect()
            channel.dataReceived(request("GET", place))
            self.assertEqual(at_once, transport.value() != b"")
            self.let_answer(transport)
            self.assertIn(b'"pay"', transport.value())

    def test_long(self) -> None:
        """A body that is too long is not read."""
        body = b'{"task": "pay", "args": ["%s"]}' % (b"x" * BODY_BYTES_MAX)
        self.assertEqual({"envelope": "none"}, self.slow("GET", self.place(body)).json)
