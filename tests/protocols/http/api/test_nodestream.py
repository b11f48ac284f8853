"""The nodes that a node knows, as events."""

from __future__ import annotations

import json
from typing import Any

from twisted.internet.testing import StringTransport

from disque_tx.protocols.http.api import nodestream
from disque_tx.protocols.http.api.nodestream import BEAT_S
from disque_tx.protocols.http.server.channel import Channel
from disque_tx.protocols.http.server.eventstream import STALLED_S
from disque_tx.protocols.http.site import standard_factory
from tests.protocols.http.httpbench import HttpCase, parsed, request

_PATH = "/api/v1/nodes/events"
_STEP_S = 0.05


class NodeStreamTests(HttpCase):
    """What readers get, second by second."""

    def stream(self, **headers: str) -> tuple[Channel, StringTransport]:
        """An open stream."""
        channel, transport = self.connect()
        channel.dataReceived(request("GET", _PATH, **headers))
        self.let_answer(transport)
        return channel, transport

    def pass_time(self, seconds: float) -> None:
        """Let the node work."""
        self.reactor.pump([_STEP_S] * round(seconds / _STEP_S))

    def events(self, transport: StringTransport, seconds: float) -> list[dict[str, Any]]:
        """What has come on a stream after some time, and was not asked for before."""
        self.pass_time(seconds)
        lines = transport.value().decode().splitlines()
        transport.clear()
        return [json.loads(line[6:]) for line in lines if line.startswith("data: ")]

    def test_first(self) -> None:
        """A page knows at once which nodes there are, as it would by asking."""
        _channel, transport = self.stream()
        self.assertIn(b"text/event-stream", transport.value())
        (event,) = filter(None, self.events(transport, 0.5))
        (asked,) = self.http("GET", "/api/v1/nodes").json["nodes"]
        self.assertEqual((asked["id"], ["myself"]), (event["nodes"][0]["id"], asked["flags"]))

    def test_beats(self) -> None:
        """An event each second shows that the node answers, although nothing has changed."""
        _channel, transport = self.stream()
        self.events(transport, 0.5)
        self.assertEqual([{}, {}, {}], self.events(transport, 3 * BEAT_S))

    def test_changed(self) -> None:
        """Another node is sent within a second, to each reader once."""
        readers = [self.stream()[1] for _ in range(2)]
        for transport in readers:
            self.events(transport, 0.5)
        self.call(b"CLUSTER", b"MEET", b"10.0.0.9", b"7711")
        self.pass_time(BEAT_S + 0.5)
        for transport in readers:
            (event,) = filter(None, self.events(transport, 0))
            self.assertEqual(2, len(event["nodes"]))

    def test_paused(self) -> None:
        """While the node lets its clients wait, it is there nevertheless; a reader that leaves
        then takes no answer of another one with it."""
        first, _ = self.stream()
        _channel, transport = self.stream()
        self.events(transport, 0.5)
        self.call(b"CLUSTER", b"MEET", b"10.0.0.9", b"7711")
        self.call(b"CLIENT", b"PAUSE", b"60000")
        self.assertEqual([{}, {}, {}], self.events(transport, 3 * BEAT_S))
        self.hang_up(first)
        self.root.runtime.server.paused_until_ms = 0
        with self.root.runtime.turn():
            self.root.runtime.resume_all()
        (event,) = filter(None, self.events(transport, 2 * BEAT_S))
        self.assertEqual(2, len(event["nodes"]))

    def test_stalled(self) -> None:
        """A reader that takes nothing is disconnected, and gets nothing before."""
        channel, transport = self.stream()
        self.events(transport, 0.5)
        channel.pauseProducing()
        self.assertEqual([], self.events(transport, 3 * BEAT_S))
        self.pass_time(STALLED_S)
        self.assertTrue(transport.disconnected)

    def test_password(self) -> None:
        """A stream needs a password, the read-only one for example, and ends with it."""
        self.settings.requirepass, self.settings.readonly_password = b"secret", b"look"
        self.problem(401, "NOAUTH", self.http("GET", _PATH))
        _channel, transport = self.stream(Authorization="Bearer look")
        self.assertNotEqual([], self.events(transport, 0.5))
        self.settings.readonly_password = b"other"
        self.pass_time(BEAT_S)
        self.assertTrue(transport.value().endswith(b"0\r\n\r\n"))

    def test_most(self) -> None:
        """Streams are limited, and one that ends makes room."""
        self.patch(nodestream, "STREAMS_MAX", 3)
        self.factory = standard_factory(self.host)
        channels = [self.stream()[0] for _ in range(3)]
        _channel, transport = self.stream()
        self.problem(503, "STREAMS", parsed(transport.value())[0])
        self.hang_up(channels[0])
        _channel, transport = self.stream()
        self.assertIn(b" 200 ", transport.value())

    def test_head(self) -> None:
        """HEAD opens no stream."""
        channel, transport = self.connect()
        channel.dataReceived(request("HEAD", _PATH))
        self.assertIn(b"text/event-stream", transport.value())
        transport.clear()
        self.assertEqual([], self.events(transport, 3 * BEAT_S))
