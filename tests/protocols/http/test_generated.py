"""Every route of the description, with requests that are as large as it allows: a new route is
tested by being there."""

from __future__ import annotations

from twisted.internet.testing import StringTransport

from disque_tx.plugins import QUEUE_BYTES_MAX
from disque_tx.protocols.http.server.slices import SLICE_BYTES
from tests.protocols.http.api.queues.test_queues import SlicedCase, letter
from tests.protocols.http.generated import ENDLESS, Hostile, hostile_requests
from tests.protocols.http.httpbench import parsed, request, whole

#: Bytes of an answer, and of what is written of it in one turn.
_ANSWER_MAX = 16 << 20
_TURN_MAX = 16 * SLICE_BYTES
_STEPS_MAX = 100_000


class GeneratedTests(SlicedCase):
    """A node with long names, large jobs, dead letters and schedules."""

    def setUp(self) -> None:
        super().setUp()
        self.document = self.http("GET", "/api/v1/openapi.json").json
        for number in range(300):
            name = b"%03d" % number
            self.call(b"ADDJOB", name + b"a" * (QUEUE_BYTES_MAX - len(name)), b"x", b"0")
        for number in range(30):
            self.call(b"ADDJOB", b"large", b"\xff" * 200_000, b"0")
            self.call(b"ADDJOB", b"dead:large", letter("y" * 100_000), b"0")
            words = (b"0 3 * * *", b"QUEUE", b"q", bytes(1_500))
            self.call(b"SCHEDULE", b"SET", b"s%d" % number, *words)

    def answered(self, one: Hostile, transport: StringTransport) -> int:
        """The most bytes that were written in one turn, until the answer is complete."""
        most, before = len(transport.value()), len(transport.value())
        for _ in range(_STEPS_MAX):
            if transport.value() and whole(transport.value()):
                return most
            self.reactor.advance(0.001)
            now = len(transport.value())
            most, before = max(most, now - before), now
        return self.fail(f"{one.what} is not answered")

    def test_bounded(self) -> None:
        """No answer is longer than a bound, none is written at once, each is one that the
        description names, and others are served meanwhile."""
        for one in hostile_requests(self.document, "large"):
            if one.what in ENDLESS:
                continue
            channel, transport = self.connect()
            channel.dataReceived(one.data)
            alive = self.http("GET", "/healthz/live")
            self.assertEqual(200, alive.status)
            most = self.answered(one, transport)
            self.assertLess(most, _TURN_MAX, one.data[:200])
            answer, _rest = parsed(transport.value())
            self.assertLess(len(transport.value()), _ANSWER_MAX, one.what)
            method, path = one.what.split(" ")
            described = self.document["paths"][path][method.lower()]["responses"]
            self.assertIn(str(answer.status), described, one.data[:200])
            self.assertNotEqual(500, answer.status, one.data[:200])
            self.hang_up(channel)

    def test_bodies(self) -> None:
        """Every route has a bound for its body, and tells it."""
        for route in self.factory.routes:
            path = route.path
            for name in route.names:
                path = path.replace(f"{{{name}}}", "x")
            for fields in ({"Content_Length": str(route.body_max + 1)},):
                answer = self.exchange(request(route.method, path, **fields))
                self.problem(413, "SIZE", answer)
                self.assertIn(str(route.body_max), answer.json["detail"])
