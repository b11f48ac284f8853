"""Queues, dead letters, the node and its events over HTTP."""

from __future__ import annotations

import json
from typing import Any

from twisted.internet.testing import StringTransport

from disque_tx.core.jobs.job import LOADED
from disque_tx.protocols.http.api.events import STREAMS_MAX, WAITING_MAX
from disque_tx.protocols.http.server.channel import Channel
from disque_tx.protocols.http.server.eventstream import STALLED_S
from disque_tx.worker.settling.deadletters import Letter
from tests.protocols.http.httpbench import Answer, HttpCase, parsed, request

_V1 = "/api/v1"


class SlicedCase(HttpCase):
    """Requests whose work is done in slices."""

    def slow(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        """The answer, when all slices are done."""
        channel, transport = self.connect()
        channel.dataReceived(request(method, path, body, **headers))
        self.let_answer(transport, complete=True)
        answer, _rest = parsed(transport.value())
        self.hang_up(channel)
        return answer


class QueueTests(SlicedCase):
    """Lists of queues, and one."""

    def test_pages(self) -> None:
        """Queues come in pages, sorted and filtered, however many there are."""
        for number in range(500):
            self.call(b"ADDJOB", b"q%03d" % number, b"x", b"0")
        for _ in range(3):
            self.call(b"ADDJOB", b"q077", b"x", b"0")
        answer = self.slow("GET", f"{_V1}/queues?limit=2&offset=498").json
        self.assertEqual((500, ["q498", "q499"]), self.names(answer))
        answer = self.slow("GET", f"{_V1}/queues?sort=queued&order=desc&limit=1").json
        self.assertEqual((500, ["q077"]), self.names(answer))
        answer = self.slow("GET", f"{_V1}/queues?match=q1?7").json
        self.assertEqual((10, "q107"), (answer["total"], answer["queues"][0]["name"]))

    def names(self, answer: Any) -> tuple[int, list[str]]:
        """The number of queues and the names on the page."""
        return answer["total"], [queue["name"] for queue in answer["queues"]]

    def test_one(self) -> None:
        """A queue's figures."""
        self.call(b"ADDJOB", b"a/b", b"x", b"0")
        queue = self.http("GET", f"{_V1}/queues/a%2Fb").json
        self.assertEqual(("a/b", 1, "none"), (queue["name"], queue["queued"], queue["pause"]))
        self.assertEqual(f"{_V1}/queues/a%2Fb", queue["url"])
        self.problem(404, "NOQUEUE", self.http("GET", f"{_V1}/queues/none"))

    def test_jobs(self) -> None:
        """Jobs that are not in the queue at the moment are found, too, page by page, and those of
        other queues are not in the way."""
        for number in range(120):
            self.call(b"ADDJOB", b"other", b"%d" % number, b"0")
        for number in range(3):
            self.call(b"ADDJOB", b"q", b"%d" % number, b"0", b"DELAY", b"60", b"RETRY", b"9")
        self.call(b"ADDJOB", b"q", b"now", b"0")
        for state, bodies in (
            ("active", "012"),
            ("queued", ["now"]),
            ("any", ["0", "1", "2", "now"]),
        ):
            found, cursor, pages = [], "0", 0
            while cursor is not None:
                query = f"state={state}&count=2&cursor={cursor}"
                answer = self.http("GET", f"{_V1}/queues/q/jobs?{query}").json
                found += answer["jobs"]
                cursor = answer["cursor"]
                pages += 1
            self.assertEqual(sorted(bodies), sorted({job["body"] for job in found}), state)
            self.assertGreater(pages, 1)
        self.assertEqual(200, self.http("GET", found[0]["url"]).status)
        for bad in ("state=lost", "count=0", "cursor=-1", "cursor=x"):
            self.problem(400, "ERR", self.http("GET", f"{_V1}/queues/q/jobs?{bad}"))

    def test_peek(self) -> None:
        """Jobs can be looked at from both ends, and stay where they are."""
        for body in (b"1", b"2", b"3"):
            self.call(b"ADDJOB", b"q", body, b"0")
        for query, bodies in (("?count=2", ["1", "2"]), ("?count=1&from=newest", ["3"])):
            jobs = self.http("GET", f"{_V1}/queues/q/peek{query}").json["jobs"]
            self.assertEqual(bodies, [job["body"] for job in jobs])
        self.problem(400, "ERR", self.http("GET", f"{_V1}/queues/q/peek?from=middle"))

    def test_pause(self) -> None:
        """A queue can be paused."""
        path = f"{_V1}/queues/q/pause"
        self.assertEqual({"pause": "out"}, self.http("POST", path, {"pause": "out"}).json)
        self.assertEqual("out", self.http("GET", f"{_V1}/queues/q").json["pause"])
        self.http("POST", path, {"pause": "none", "everywhere": True})
        for bad in ({}, {"pause": "maybe"}, {"pause": "in", "everywhere": 1}):
            self.problem(400, "ERR", self.http("POST", path, bad))

    def test_kept_pause(self) -> None:
        """A pause that is kept is a policy of this queue alone, so that nodes that join later have
        it, and ending it ends whatever paused the queue."""
        path = f"{_V1}/queues/a%2Ab/pause"

        def post(pause: str) -> Any:
            return self.http("POST", path, {"pause": pause, "kept": True}).json

        self.assertEqual({"pause": "all"}, post("all"))
        rule = self.http("GET", f"{_V1}/queues/a%2Ab/policy").json["settings"]["pause"]
        self.assertEqual({"value": "all", "pattern": "a\\*b"}, rule)
        self.assertEqual("none", self.call(b"PAUSE", b"axb", b"state").text.decode())
        self.call(b"PAUSE", b"a*b", b"out")
        self.assertEqual({"pause": "in"}, post("in"))
        self.call(b"PAUSE", b"a*b", b"out")
        self.assertEqual({"pause": "none"}, post("none"))
        self.assertEqual([], self.call(b"QPOLICY", b"LIST"))
        self.call(b"QPOLICY", b"SET", b"a*", b"pause", b"all")
        self.assertEqual({"pause": "none"}, post("none"))
        self.assertEqual("all", self.call(b"PAUSE", b"axb", b"state").text.decode())
        self.problem(400, "ERR", self.http("POST", path, {"pause": "in", "kept": 1}))

    def test_dots(self) -> None:
        """Queues and schedules named like steps in a path can be used with every client, although
        browsers and proxies remove such steps."""
        for name in (".", ".."):
            url = f"{_V1}/queues/={name}"
            added = self.http("POST", f"{url}/jobs", {"body": name})
            self.assertEqual(201, added.status, added.body)
            (job,) = self.http("GET", f"{url}/peek").json["jobs"]
            self.assertEqual((name, name), (job["queue"], job["body"]))
            self.assertEqual(url, self.http("GET", url).json["url"])
            flushed = self.slow("POST", f"{url}/flush", {"queue": name})
            self.assertEqual(1, flushed.json["count"])
            schedule = f"{_V1}/schedules/={name}"
            set_ = {"cron": "0 3 * * *", "queue": name, "body": "x"}
            self.assertEqual(schedule, self.http("PUT", schedule, set_).json["url"])
            self.assertEqual(name, self.http("GET", schedule).json["name"])
        self.http("POST", f"{_V1}/queues/%3D./jobs", {"body": "other"})
        self.assertEqual(1, self.call(b"QLEN", b"=."))
        self.assertEqual(0, self.call(b"QLEN", b"."))
        self.problem(400, "ERR", self.http("GET", f"{_V1}/queues/../peek"))

    def test_scale(self) -> None:
        """An autoscaler gets what is ready, in flight, and when it will be done."""
        path = f"{_V1}/queues/q/scale"
        empty = {"ready": 0, "in_flight": 0, "rate": 0.0, "expected_drain_seconds": 0.0}
        self.assertEqual(empty, self.slow("GET", path).json)
        for _ in range(5):
            self.call(b"ADDJOB", b"q", b"x", b"0")
        self.assertIsNone(self.slow("GET", path).json["expected_drain_seconds"])
        self.reactor.advance(2)
        self.call(b"GETJOB", b"COUNT", b"2", b"FROM", b"q")
        scale = self.slow("GET", path).json
        self.assertEqual((3, 2), (scale["ready"], scale["in_flight"]))
        self.assertEqual((0.2, 15.0), (scale["rate"], scale["expected_drain_seconds"]))
        self.assertEqual((3, 2), (scale["ready"], scale["in_flight"]))
        self.assertEqual(scale, self.slow("GET", f"{path}?cluster=1").json)


def letter(reason: str) -> bytes:
    """A dead letter of the queue ``mail``."""
    dead = Letter(
        queue="mail", id="D-dcb833cf-8YL1NT17e9+wsA/09NqxscQI-05a1", body=b"x", reason=reason,
        traceback="", worker="w", nacks=1, additional_deliveries=0, failed_at_s=1.0, retry_s=9,
    )  # fmt: skip
    return dead.encoded()


class DeadLetterTests(SlicedCase):
    """Jobs that workers gave up on."""

    def setUp(self) -> None:
        super().setUp()
        self.letters = f"{_V1}/queues/mail/dead-letters"
        for number in range(60):
            self.add(letter("timeout" if number % 3 else "refused"))
        self.add(b"no letter")

    def add(self, body: bytes) -> None:
        """Put a job into the queue of dead letters."""
        self.call(b"ADDJOB", b"dead:mail", body, b"0")

    def test_listed(self) -> None:
        """Reasons come first, the most frequent one at the top."""
        listed = self.slow("GET", self.letters).json
        counts = [(group["reason"], group["count"]) for group in listed["reasons"]]
        self.assertEqual([("timeout", 40), ("refused", 20)], counts[:2])
        self.assertEqual((61, 1), (listed["total"], counts[2][1]))
        self.assertEqual("w", listed["reasons"][0]["letters"][0]["worker"])

    def test_loaded(self) -> None:
        """Letters that came from the log are listed, and dropped, before their RETRY is over."""
        ids = [job[1] for job in self.call(b"QPEEK", b"dead:mail", b"61")]
        self.assertEqual(61, self.call(b"DEQUEUE", *ids))
        node = self.root.server.node
        for job_id in ids:
            job = node.jobs.get(job_id)
            assert job is not None
            node.jobs.set_whereabouts(job, LOADED)
        self.assertEqual(61, self.slow("GET", self.letters).json["total"])
        self.assertEqual(61, self.slow("POST", f"{self.letters}/drop", {"all": True}).json["count"])
        self.assertEqual(0, self.slow("GET", self.letters).json["total"])

    def test_requeue(self) -> None:
        """All jobs with one reason are added again, with their options, and their letters go."""
        done = self.slow("POST", f"{self.letters}/requeue", {"reason": "timeout"}).json
        self.assertEqual({"count": 40, "failed": [], "failed_count": 0}, done)
        self.assertEqual((40, 21), (self.call(b"QLEN", b"mail"), self.call(b"QLEN", b"dead:mail")))
        ((_queue, job_id, _body),) = self.call(b"GETJOB", b"FROM", b"mail")
        self.assertEqual(9, self.call(b"SHOW", job_id)[15])

    def test_unreadable(self) -> None:
        """What is not a letter stays, and the answer says so."""
        done = self.slow("POST", f"{self.letters}/requeue", {"all": True}).json
        self.assertEqual((60, 1), (done["count"], done["failed_count"]))
        self.assertIn("not a dead letter", done["failed"][0]["detail"])
        self.assertEqual(1, self.call(b"QLEN", b"dead:mail"))

    def test_hostile(self) -> None:
        """Letters that any producer may have written are listed as JSON, and are not in the way of
        the others when all are put back."""
        values = json.loads(letter("hostile"))
        for change in (
            {"queue": "\ud800"}, {"failed_at_s": float("nan")}, {"failed_at_s": 1e300},
            {"replicate": 2**31}, {"ttl_s": 0, "id": "x"}, {"queue": ""},
        ):  # fmt: skip
            self.add(json.dumps({**values, **change}).encode())
        listed = self.slow("GET", self.letters)
        self.assertEqual(67, listed.json["total"])
        self.assertNotIn(b"NaN", listed.body)
        done = self.slow("POST", f"{self.letters}/requeue", {"all": True})
        self.assertEqual(200, done.status, done.body)
        left = self.call(b"QLEN", b"dead:mail")
        self.assertEqual(67, done.json["count"] + left)
        self.assertGreaterEqual(done.json["count"], 60)
        self.assertEqual(left, done.json["failed_count"])

    def test_drop(self) -> None:
        """Single letters, or all, can be dropped."""
        listed = self.slow("GET", self.letters).json
        one = listed["reasons"][0]["letters"][0]["id"]
        self.assertEqual(1, self.slow("POST", f"{self.letters}/drop", {"ids": [one]}).json["count"])
        self.assertEqual(60, self.slow("POST", f"{self.letters}/drop", {"all": True}).json["count"])
        self.assertEqual(0, self.call(b"QLEN", b"dead:mail"))

    def test_limit(self) -> None:
        """A page requeues thousands in parts, and shows how far it is."""
        some: dict[str, object] = {"all": True, "limit": 25}
        self.assertEqual(25, self.slow("POST", f"{self.letters}/requeue", some).json["count"])
        some = {"reason": "refused", "limit": 5}
        self.assertEqual(5, self.slow("POST", f"{self.letters}/drop", some).json["count"])
        self.assertEqual(31, self.call(b"QLEN", b"dead:mail"))
        answer = self.slow("POST", f"{self.letters}/drop", {"all": True, "limit": 0})
        self.problem(400, "ERR", answer)

    def test_choice(self) -> None:
        """A request that chooses nothing, or is ambiguous, does nothing."""
        for bad in (
            {}, {"all": False}, {"all": True, "reason": "x"}, {"reason": 1}, {"ids": "x"},
        ):  # fmt: skip
            self.problem(400, "ERR", self.slow("POST", f"{self.letters}/drop", bad))
        self.assertEqual(61, self.call(b"QLEN", b"dead:mail"))


class NodeTests(HttpCase):
    """The node and its cluster."""

    def test_nodes(self) -> None:
        """A node alone knows itself."""
        (node,) = self.http("GET", f"{_V1}/nodes").json["nodes"]
        self.assertIn("myself", node["flags"])

    def test_clients(self) -> None:
        """The client that asks is one."""
        listed = self.http("GET", f"{_V1}/clients").json
        self.assertEqual((1, "http"), (listed["total"], listed["clients"][0]["name"]))
        self.assertEqual([], self.http("GET", f"{_V1}/clients?offset=1").json["clients"])

    def test_page_of_clients(self) -> None:
        """One of many clients is shown without a look at all of them; all of them are shown in
        slices, in order."""
        self.call(b"CONFIG", b"SET", b"maxclients", b"1000")
        others = [self.connect() for _ in range(300)]
        known = list(self.root.runtime.server.clients)
        listed = self.http("GET", f"{_V1}/clients?limit=1&offset=7").json
        self.assertEqual(301, listed["total"])
        self.assertEqual([str(known[7])], [client["id"] for client in listed["clients"]])
        channel, transport = self.connect()
        channel.dataReceived(request("GET", f"{_V1}/clients?limit=1000"))
        self.assertEqual(b"", transport.value())
        self.let_answer(transport, complete=True)
        ids = [int(client["id"]) for client in parsed(transport.value())[0].json["clients"]]
        self.assertEqual((301, sorted(ids)), (len(ids), ids))
        self.assertEqual(300, len(others))

    def test_slowlog(self) -> None:
        """Slow commands are listed without passwords."""
        self.call(b"CONFIG", b"SET", b"slowlog-log-slower-than", b"0")
        self.call(b"CONFIG", b"SET", b"readonly-password", b"hidden")
        answer = self.http("GET", f"{_V1}/slowlog?limit=1")
        entry = answer.json["entries"][0]
        self.assertEqual(["CONFIG", "SET", "readonly-password", "(redacted)"], entry["words"])
        _, (number, at_s, took_us, *_) = self.call(b"SLOWLOG", b"GET", b"2")
        seen = (entry["id"], entry["at_s"], entry["duration_us"])
        self.assertEqual((number, at_s, took_us), seen)

    def test_secrets(self) -> None:
        """The configuration shows that there is a password, and not which."""
        self.settings.requirepass = b"hidden"
        answer = self.http("GET", f"{_V1}/config", Authorization="Bearer hidden")
        self.assertEqual("(set)", answer.json["settings"]["requirepass"])
        self.assertNotIn(b"hidden", answer.body)

    def test_figures(self) -> None:
        """INFO and LATENCY are there."""
        self.assertEqual("0", self.http("GET", f"{_V1}/info").json["fields"]["registered_jobs"])
        self.assertEqual([], self.http("GET", f"{_V1}/latency").json["events"])

    def test_roles(self) -> None:
        """The read-only password reads; without one there is nothing."""
        self.settings.requirepass, self.settings.readonly_password = b"secret", b"look"
        look = {"Authorization": "Bearer look"}
        self.assertEqual(200, self.http("GET", f"{_V1}/nodes", **look).status)
        add = f"{_V1}/queues/q/jobs"
        self.problem(403, "NOPERM", self.http("POST", add, {"body": "x"}, **look))
        self.problem(401, "NOAUTH", self.http("GET", f"{_V1}/nodes"))
        wrong = {"Authorization": "Bearer x"}
        for _ in range(10):
            self.problem(401, "NOAUTH", self.http("GET", f"{_V1}/nodes", **wrong))
        self.problem(429, "TRYLATER", self.http("GET", f"{_V1}/nodes", **wrong))
        self.assertEqual(200, self.http("GET", "/healthz/live", **wrong).status)


class EventTests(HttpCase):
    """Events as they happen."""

    def stream(self, query: str = "") -> tuple[Channel, StringTransport]:
        """An open stream."""
        channel, transport = self.connect()
        channel.dataReceived(request("GET", f"{_V1}/events{query}"))
        return channel, transport

    def events(self, transport: StringTransport) -> list[dict[str, Any]]:
        """The events on a stream."""
        self.reactor.advance(0.2)
        lines = transport.value().decode().splitlines()
        return [json.loads(line[6:]) for line in lines if line.startswith("data: ")]

    def test_life(self) -> None:
        """A job's life is seen while it happens."""
        _channel, transport = self.stream("?queue=m*&kinds=added,delivered")
        self.assertIn(b"text/event-stream", transport.value())
        self.call(b"ADDJOB", b"mail", b"x", b"0")
        self.call(b"ADDJOB", b"other", b"x", b"0")
        self.call(b"GETJOB", b"FROM", b"mail")
        events = self.events(transport)
        self.assertEqual(["added", "delivered"], [event["kind"] for event in events])
        self.assertEqual({"mail"}, {event["queue"] for event in events})

    def test_elapsed(self) -> None:
        """How long something took stands in its event, also if that is no time, and nowhere
        else."""
        _channel, transport = self.stream("?kinds=added,delivered")
        words = (b"ADDJOB", b"q", b"x", b"0"), (b"GETJOB", b"FROM", b"q")
        with self.root.runtime.turn():
            calls = [self.root.node_service.call(*one) for one in words]
        for call in calls:
            self.successResultOf(call)
        added, delivered = self.events(transport)
        self.assertEqual((None, 0), (added.get("elapsed_ms"), delivered.get("elapsed_ms")))

    def test_ends(self) -> None:
        """A node records no events when nobody reads them."""
        channel, _transport = self.stream()
        self.assertIsNotNone(self.root.runtime.node.outbox.events)
        self.hang_up(channel)
        self.assertIsNone(self.root.runtime.node.outbox.events)

    def test_dropped(self) -> None:
        """A burst beyond the limit is cut, and the reader is told how much."""
        _channel, transport = self.stream("?kinds=added")
        for _ in range(WAITING_MAX + 7):
            self.call(b"ADDJOB", b"q", b"x", b"0")
        events = self.events(transport)
        self.assertEqual((WAITING_MAX + 1, {"count": 7}), (len(events), events[-1]))

    def test_stalled(self) -> None:
        """A reader that takes nothing is disconnected."""
        channel, transport = self.stream()
        channel.pauseProducing()
        self.reactor.advance(STALLED_S)
        self.assertTrue(transport.disconnected)

    def test_resumed(self) -> None:
        """A slow reader gets what it missed, as far as it was kept."""
        channel, transport = self.stream("?kinds=added")
        channel.pauseProducing()
        self.call(b"ADDJOB", b"q", b"x", b"0")
        self.assertEqual([], self.events(transport))
        channel.resumeProducing()
        self.assertEqual(1, len(self.events(transport)))

    def test_exhaustion(self) -> None:
        """Streams are limited, and one that ends makes room."""
        streams = [self.stream()[0] for _ in range(STREAMS_MAX)]
        _channel, transport = self.stream()
        self.problem(503, "STREAMS", parsed(transport.value())[0])
        self.hang_up(streams[0])
        _channel, transport = self.stream()
        self.assertIn(b" 200 ", transport.value())

    def test_head(self) -> None:
        """HEAD opens no stream."""
        channel, transport = self.connect()
        channel.dataReceived(request("HEAD", f"{_V1}/events"))
        self.assertIn(b"text/event-stream", transport.value())
        self.assertIsNone(self.root.runtime.node.outbox.events)

    def test_kinds(self) -> None:
        """An unknown kind is an error."""
        self.problem(400, "ERR", self.http("GET", f"{_V1}/events?kinds=born"))
