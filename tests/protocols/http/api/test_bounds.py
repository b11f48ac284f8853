"""Answers are bounded in bytes, and made in slices: nobody else waits for a large one."""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import Any
from urllib.parse import quote

from twisted.internet.testing import StringTransport

from disque_tx.engine.calendar import CronCalendar
from disque_tx.plugins import QUEUE_BYTES_MAX
from disque_tx.protocols.http.api.base.bodies import (
    BEGINNING,
    BODIES_MAX,
    BODY_MAX,
    whole_characters,
)
from disque_tx.protocols.http.api.jobs import deadletters
from disque_tx.protocols.http.api.jobs.letters import LETTER_BYTES_MAX, TOO_LONG
from disque_tx.protocols.http.server.channel import Channel
from disque_tx.protocols.http.server.exchange import PATTERN_BYTES
from disque_tx.protocols.http.server.slices import COSTLY_MAX, SLICE_BYTES
from disque_tx.protocols.http.server.streaming import STALLED_S
from tests.protocols.http.api.queues.test_queues import SlicedCase, letter
from tests.protocols.http.httpbench import parsed, request

_V1 = "/api/v1"


class BodyTests(SlicedCase):
    """Jobs with large bodies."""

    def setUp(self) -> None:
        super().setUp()
        self.bodies = [b"%03d" % number + bytes(100_000) for number in range(60)]
        for body in self.bodies:
            self.call(b"ADDJOB", b"q", body, b"0")

    def check(self, jobs: list[dict[str, Any]]) -> None:
        """All jobs are there, the first with whole bodies, the others with a beginning."""
        self.assertEqual(len(self.bodies), len(jobs))
        whole = [job for job in jobs if "body_truncated" not in job]
        self.assertEqual({100_003}, {len(job["body"]) for job in whole})
        self.assertEqual(BODIES_MAX // 100_003, len(whole))
        for job in jobs[len(whole) :]:
            shown = (job["body_truncated"], job["body_bytes"], len(job["body"]))
            self.assertEqual((True, 100_003, BEGINNING), shown)

    def test_peek(self) -> None:
        """Who looks at many large jobs gets as much as is good for the node, and sees where the
        rest is."""
        jobs = self.slow("GET", f"{_V1}/queues/q/peek?count=1000").json["jobs"]
        self.check(jobs)
        self.assertEqual([body[:3].decode() for body in self.bodies], [j["body"][:3] for j in jobs])
        whole = self.slow("GET", jobs[-1]["url"]).json
        self.assertEqual(self.bodies[-1].decode(), whole["body"])

    def test_jobs(self) -> None:
        """The same holds for the jobs of a queue by state."""
        self.check(self.slow("GET", f"{_V1}/queues/q/jobs?count=1000").json["jobs"])

    def test_lease(self) -> None:
        """A worker that leases many large jobs gets as many as are good for the node, with whole
        bodies, and the others later; one job it gets whatever its size."""
        found: list[str] = []
        for body in (bytes(2_000_000), b"\xff" * (BODIES_MAX + 1), bytes(2_000_000)):
            self.call(b"ADDJOB", b"mail", body, b"0")
        numbers = []
        while len(found) < 3:
            jobs = self.slow("POST", f"{_V1}/queues/mail/lease?count=1000").json["jobs"]
            numbers.append(len(jobs))
            found += [job.get("body", job.get("body_base64")) for job in jobs]
        self.assertEqual([1, 1, 1], numbers)
        self.assertEqual(bytes(2_000_000).decode(), found[0])
        self.assertEqual(b"\xff" * (BODIES_MAX + 1), b64decode(found[1]))
        for some in (self.bodies[:41], self.bodies[41:]):
            jobs = self.slow("POST", f"{_V1}/queues/q/lease?count=1000").json["jobs"]
            self.assertEqual([body.decode() for body in some], [job["body"] for job in jobs])

    def test_leases_at_once(self) -> None:
        """Workers that lease large jobs at once get different ones, one worker in a turn."""
        channels = [self.connect() for _ in range(3)]
        for channel, transport in channels:
            channel.dataReceived(request("POST", f"{_V1}/queues/q/lease?count=20"))
            self.assertEqual(b"", transport.value())
        found: list[str] = []
        for _channel, transport in channels:
            self.let_answer(transport, complete=True)
            found += [job["body"][:3] for job in parsed(transport.value())[0].json["jobs"]]
        self.assertEqual([body[:3].decode() for body in self.bodies], sorted(found))

    def test_one(self) -> None:
        """One body that is too large for a list is cut, whatever room there is."""
        self.call(b"ADDJOB", b"large", bytes(BODY_MAX + 1), b"0")
        (job,) = self.slow("GET", f"{_V1}/queues/large/peek").json["jobs"]
        self.assertEqual((BODY_MAX + 1, BEGINNING), (job["body_bytes"], len(job["body"])))

    def test_slices(self) -> None:
        """A turn makes no more of an answer than a slice, and other requests are served between
        any two of them."""
        channel, transport = self.connect()
        channel.dataReceived(request("GET", f"{_V1}/queues/q/peek?count=1000"))
        turns = 0
        while not transport.value().endswith(b"0\r\n\r\n"):
            before = len(transport.value())
            self.reactor.advance(0.001)
            self.assertLess(len(transport.value()) - before, 8 * SLICE_BYTES)
            self.assertEqual(200, self.http("GET", "/healthz/live").status)
            turns += 1
        self.assertGreater(turns, 30)

    def test_whole(self) -> None:
        """A single job is shown whole, whatever its body is, and part by part."""
        euro = "\u20ac".encode()
        for body in (
            b"", b"x", euro * 100_000, b"x" + euro * 100_000, b"\xff" * 300_001,
            euro * 70_000 + b"\xe2",
            "\U0001f600\x00\"\\".encode() * 30_000,
        ):  # fmt: skip
            job_id = self.call(b"ADDJOB", b"one", body, b"0").text.decode()
            answer = self.slow("GET", f"{_V1}/jobs/{quote(job_id, safe='')}").json
            if "body" in answer:
                self.assertEqual(body, answer["body"].encode())
            else:
                self.assertEqual(body, b64decode(answer["body_base64"]))

    def test_characters(self) -> None:
        """Text that is cut stays text."""
        for data, expected in (
            (b"ab\xc3\xa4", b"ab\xc3\xa4"), (b"ab\xc3", b"ab"), (b"ab\xe2\x82", b"ab"),
            (b"a\xff\xe2\x82", b"a\xff\xe2\x82"), (b"", b""),
        ):  # fmt: skip
            self.assertEqual(expected, whole_characters(data))


class LetterTests(SlicedCase):
    """Dead letters, which any producer may add."""

    def add(self, body: bytes) -> None:
        """Put a job into the queue of dead letters."""
        self.call(b"ADDJOB", b"dead:mail", body, b"0")

    def test_long_name(self) -> None:
        """The letters of a queue with the longest name are found where the node puts them."""
        queue = "q" * 1_020
        self.call(b"ADDJOB", (b"dead:" + queue.encode())[:QUEUE_BYTES_MAX], letter("short"), b"0")
        answer = self.slow("GET", f"{_V1}/queues/{queue}/dead-letters").json
        self.assertEqual((1, "short"), (answer["total"], answer["reasons"][0]["reason"]))

    def test_long(self) -> None:
        """A letter that is too long to be read is listed, and can be requeued by that."""
        path = f"{_V1}/queues/mail/dead-letters"
        self.add(letter("x" * LETTER_BYTES_MAX))
        self.add(letter("short"))
        answer = self.slow("GET", path).json
        self.assertEqual((2, False), (answer["total"], answer["truncated"]))
        reasons = [TOO_LONG, "short"]
        self.assertEqual(reasons, [group["reason"] for group in answer["reasons"]])
        done = self.slow("POST", f"{path}/requeue", {"reason": TOO_LONG}).json
        self.assertEqual((1, 0), (done["count"], done["failed_count"]))
        self.assertEqual((1, 1), (self.call(b"QLEN", b"mail"), self.call(b"QLEN", b"dead:mail")))

    def test_many(self) -> None:
        """Not all letters are looked at if they have too many bytes, and the answer says so."""
        self.patch(deadletters, "LISTED_BYTES_MAX", 5_000)
        for _ in range(20):
            self.add(letter("x" * 1_000))
        answer = self.slow("GET", f"{_V1}/queues/mail/dead-letters").json
        self.assertEqual(True, answer["truncated"])
        self.assertLess(answer["read"], 6)
        self.assertEqual(20, answer["total"])

    def test_names(self) -> None:
        """Nothing in a letter makes an answer long."""
        hostile = letter("reason").replace(b'"worker": "w"', b'"worker": "%s"' % (b"w" * 100_000))
        for _ in range(20):
            self.add(hostile)
        self.assertLess(len(self.slow("GET", f"{_V1}/queues/mail/dead-letters").body), 20_000)


class _CountingCalendar(CronCalendar):
    """Counts how often an occurrence is computed."""

    asked = 0

    def after(self, expression: bytes, zone: bytes, time_s: int) -> int:
        self.asked += 1
        return super().after(expression, zone, time_s)


class ScheduleTests(SlicedCase):
    """Schedules, whose occurrences have to be computed."""

    def test_page(self) -> None:
        """A page costs as much as the schedules on it, and not as all of them."""
        calendar = _CountingCalendar()
        self.root.runtime.node.recurring.calendar = calendar
        for number in range(50):
            words = (b"0 3 * * *", b"QUEUE", b"q", bytes(1_500))
            self.call(b"SCHEDULE", b"SET", b"s%02d" % number, *words)
        self.assertEqual(50, len(self.slow("GET", f"{_V1}/schedules").json["schedules"]))
        calendar.asked = 0
        answer = self.http("GET", f"{_V1}/schedules?limit=1&offset=7").json
        (shown,) = answer["schedules"]
        self.assertEqual((50, "s07", 1), (answer["total"], shown["name"], len(shown["next_s"])))
        self.assertLess(calendar.asked, 10)


class CostlyTests(SlicedCase):
    """Requests whose cost grows with all of the node."""

    def setUp(self) -> None:
        super().setUp()
        for number in range(1_500):
            self.call(b"ADDJOB", b"q%04d" % number + bytes(300), b"x", b"0")

    def begin(self) -> tuple[Channel, StringTransport]:
        """Ask for the metrics of all queues."""
        channel, transport = self.connect()
        channel.dataReceived(request("GET", "/metrics/detailed"))
        return channel, transport

    def refused(self) -> bool:
        """Whether another one is refused."""
        channel, transport = self.begin()
        is_refused = bool(transport.value())
        if is_refused:
            answer = parsed(transport.value())[0]
            self.problem(503, "TRYLATER", answer)
            self.assertIn("retry-after", answer.headers)
        self.hang_up(channel)
        return is_refused

    def test_few(self) -> None:
        """However many ask, two are served at a time, and the others are told when to try again;
        one that ends, or whose client goes away, makes room."""
        running = [self.begin() for _ in range(COSTLY_MAX)]
        self.assertTrue(self.refused())
        self.hang_up(running[0][0])
        self.assertFalse(self.refused())
        self.let_answer(running[1][1], complete=True)
        self.assertEqual(16_500, running[1][1].value().count(b"\ndisque_queue"))
        self.assertFalse(self.refused())

    def test_not_taken(self) -> None:
        """Nothing more is made of an answer that the client does not take, and after a while its
        connection ends and its place is free."""
        channel, transport = self.begin()
        self.let_answer(transport)
        channel.pauseProducing()
        self.reactor.advance(1)
        sent = len(transport.value())
        self.reactor.advance(1)
        self.assertEqual(sent, len(transport.value()))
        channel.resumeProducing()
        self.reactor.advance(0.01)
        self.assertGreater(len(transport.value()), sent)
        channel.pauseProducing()
        self.reactor.advance(0.01)
        self.reactor.advance(STALLED_S)
        self.assertTrue(transport.disconnected)

    def test_head(self) -> None:
        """HEAD does not make the answer."""
        channel, transport = self.connect()
        channel.dataReceived(request("HEAD", "/metrics/detailed"))
        self.let_answer(transport)
        self.assertIn(b" 200 ", transport.value())
        self.assertFalse(self.refused())


class NameTests(SlicedCase):
    """Names and patterns, each of which is compared with many others."""

    def test_paths(self) -> None:
        """No route takes a longer name than a queue may have."""
        for route in self.factory.routes:
            for name in route.names:
                path = route.path.replace(f"{{{name}}}", "x" * (QUEUE_BYTES_MAX + 1))
                self.problem(400, "ERR", self.http(route.method, path))

    def test_queries(self) -> None:
        """No route takes longer text than it declares, and patterns are short."""
        for route in self.factory.routes:
            path = route.path
            for name in route.names:
                path = path.replace(f"{{{name}}}", "x")
            for parameter in route.parameters:
                if parameter.kind == "string" and parameter.place == "query":
                    text = "%C3%A4" * (parameter.longest // 2 + 1)
                    answer = self.slow(route.method, f"{path}?{parameter.name}={text}")
                    self.problem(400, "ERR", answer)
        for path in ("/counts", "/queues"):
            answer = self.slow("GET", f"{_V1}{path}?match={'a' * (PATTERN_BYTES + 1)}")
            self.problem(400, "ERR", answer)

    def test_bodies(self) -> None:
        """Nor are they taken in a body."""
        name = "x" * (QUEUE_BYTES_MAX + 1)
        answer = self.http("POST", f"{_V1}/queues/q/move", {"to": name})
        self.problem(400, "ERR", answer)
        new = {"every_s": 60, "queue": name, "body": "x"}
        self.problem(400, "ERR", self.http("PUT", f"{_V1}/schedules/s", new))


class LargeBodyTests(SlicedCase):
    """Large bodies of requests."""

    def added(self, members: dict[str, Any]) -> bytes:
        """The body of the job that this request adds."""
        path = f"{_V1}/queues/q/jobs"
        answer = self.slow("POST", path, {**members, "ttl_s": "600", "retry_s": 5})
        self.assertEqual(201, answer.status, answer.body[:200])
        (job,) = self.call(b"GETJOB", b"NOHANG", b"FROM", b"q")
        body: bytes = job[2]
        return body

    def test_added(self) -> None:
        """A job of megabytes is what was sent, as text and as Base64."""
        body = '\u20ac\U0001f600\\"\n'.encode() * 100_000
        self.assertEqual(body, self.added({"body": body.decode()}))
        self.assertEqual(body, self.added({"body_base64": b64encode(body).decode()}))

    def test_bad_base64(self) -> None:
        """Base64 that is none is refused, wherever that is."""
        path = f"{_V1}/queues/q/jobs"
        for wrong in ("QQ==" * 100_000, "QUFB" * 100_000 + "?", "QUFB" * 100_000 + "Q"):
            answer = self.slow("POST", path, {"body_base64": wrong})
            self.problem(400, "ERR", answer)

    def test_not_json(self) -> None:
        """Other JSON of many megabytes costs nothing like its size, and adds nothing."""
        path = f"{_V1}/queues/q/jobs"
        for wrong in ([0] * 200_000, {"body": [0] * 200_000}, {"ids": "x" * 100_000}):
            self.problem(400, "ERR", self.slow("POST", path, wrong))
        self.assertEqual(0, self.call(b"QLEN", b"q"))

    def test_many_values(self) -> None:
        """A body with more values than any request needs is not read."""
        path = f"{_V1}/queues/q/dead-letters/drop"
        self.problem(413, "SIZE", self.http("POST", path, {"ids": [""] * 200_000}))
