"""Adding jobs over HTTP."""

from __future__ import annotations

from base64 import b64encode
from urllib.parse import quote

from tests.protocols.http.httpbench import HttpCase

_JOBS = "/api/v1/queues/mail/jobs"
_LEASE = "/api/v1/queues/mail/lease"


class AddTests(HttpCase):
    """Adding jobs."""

    def test_text(self) -> None:
        """curl alone can add a job."""
        answer = self.http("POST", _JOBS, {"body": "Grüße"})
        self.assertEqual(201, answer.status, answer.body)
        self.assertEqual(answer.json["url"], answer.headers["location"])
        ((queue, job_id, body),) = self.call(b"GETJOB", b"FROM", b"mail")
        self.assertEqual((b"mail", "Grüße".encode()), (queue, body))
        self.assertEqual(answer.json["id"].encode(), job_id)

    def test_bytes(self) -> None:
        """A body may be any bytes."""
        data = bytes(range(256))
        answer = self.http("POST", _JOBS, {"body_base64": b64encode(data).decode()})
        self.assertEqual(201, answer.status)
        leased = self.http("POST", _LEASE).json["jobs"][0]
        self.assertEqual(b64encode(data).decode(), leased["body_base64"])
        self.assertNotIn("body", leased)

    def test_options(self) -> None:
        """All options of ADDJOB arrive."""
        options = {"retry_s": 7, "ttl_s": 600, "delay_s": 30, "replicate": 1, "maxlen": 10}
        answer = self.http("POST", _JOBS, {"body": "x", "async": True, **options})
        shown = self.http("GET", answer.json["url"]).json
        self.assertEqual((7, 600, 30), (shown["retry"], shown["ttl"], shown["delay"]))

    def test_key(self) -> None:
        """A producer that repeats a request with the same key gets the same job."""
        new = {"body": "x", "unique": "order-7"}
        first, again = self.http("POST", _JOBS, new), self.http("POST", _JOBS, new)
        self.assertEqual((201, 200), (first.status, again.status))
        self.assertEqual((True, False), (first.json["new"], again.json["new"]))
        self.assertEqual(first.json["id"], again.json["id"])
        self.assertEqual(first.json["url"], again.headers["location"])
        other = {"body": "x", "unique_base64": "/w==", "unique_for_s": 60}
        self.assertEqual([201, 200], [self.http("POST", _JOBS, other).status for _ in range(2)])
        self.assertEqual(2, self.call(b"QLEN", b"mail"))

    def test_key_in_header(self) -> None:
        """Libraries that repeat requests put their key into a header."""
        key = {"Idempotency_Key": '"8e03978e"'}
        ids = {self.http("POST", _JOBS, {"body": "x"}, **key).json["id"] for _ in range(2)}
        self.assertEqual((1, 1), (len(ids), self.call(b"QLEN", b"mail")))
        both = self.http("POST", _JOBS, {"body": "x", "unique": "k"}, **key)
        self.problem(400, "ERR", both)
        in_query = self.http("POST", f"{_JOBS}?Idempotency-Key=k", {"body": "x"})
        self.problem(400, "ERR", in_query)
        self.http("POST", _JOBS, {"body": "x"}, Idempotency_Key="k" * 512)
        self.assertEqual(2, self.call(b"QLEN", b"mail"))
        long = self.http("POST", _JOBS, {"body": "x"}, Idempotency_Key="k" * 513)
        self.problem(400, "ERR", long)
        self.assertEqual("Idempotency-Key has 512 bytes at most.", long.json["detail"])

    def test_queue_names(self) -> None:
        """A queue may have any name, slashes and bytes that are not UTF-8 included."""
        for name in (b"a/b", b"..", b"\xff\0", b"<b>", "ü".encode()):
            path = f"/api/v1/queues/{quote(name, safe='').replace('..', '%2E%2E')}/jobs"
            self.assertEqual(201, self.http("POST", path, {"body": "x"}).status, name)
            self.assertEqual(1, self.call(b"QLEN", name))

    def test_refused(self) -> None:
        """What is not understood adds nothing, and the answer says what is wrong."""
        for body, word in (
            ({}, "body"), ({"body": 1}, "body"), ({"body": "x", "body_base64": "eA=="}, "either"),
            ({"body_base64": "!"}, "body_base64"), ({"body": "x", "retry": 1}, "'retry'"),
            ({"body": "x", "ttl_s": 0}, "ttl_s"), ({"body": "x", "ttl_s": 1.5}, "ttl_s"),
            ({"body": "x", "async": 1}, "async"), ({"body": "x", "delay_s": True}, "delay_s"),
            ({"body": "\ud800"}, "body"), ([], "object"), (b"{", "JSON"), (b'{"a":NaN}', "JSON"),
            (b"[" * 100_000, "JSON"), ({"body": "x", "timeout_ms": 0}, "timeout_ms"),
            ({"body": "x", "unique": ""}, "UNIQUE"), ({"body": "x", "unique": 7}, "unique"),
            ({"body": "x", "unique_for_s": 7}, "unique_for_s"),
            ({"body": "x", "unique": "k", "unique_for_s": 0}, "unique_for_s"),
            (b'{"body": "\xff"}', "JSON"), ({"body": "x", "ttl_s": 10, "delay_s": 10}, ""),
        ):  # fmt: skip
            answer = self.http("POST", _JOBS, body)
            self.problem(400, "ERR", answer)
            self.assertIn(word, answer.json["detail"])
        self.problem(415, "TYPE", self.http("POST", _JOBS, b"body=x", Content_Type="text/plain"))
        self.assertEqual(0, self.call(b"QLEN", b"mail"))

    def test_codes(self) -> None:
        """Errors of the node keep their codes."""
        self.call(b"PAUSE", b"mail", b"in")
        self.problem(409, "PAUSED", self.http("POST", _JOBS, {"body": "x"}))
        self.call(b"PAUSE", b"mail", b"none")
        full = {"body": "x", "maxlen": 1}
        self.http("POST", _JOBS, full)
        self.problem(409, "MAXLEN", self.http("POST", _JOBS, full))
        self.problem(503, "NOREPL", self.http("POST", _JOBS, {"body": "x", "replicate": 3}))
