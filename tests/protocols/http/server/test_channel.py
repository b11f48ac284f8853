"""HTTP connections: admission, limits, passwords, health."""

from __future__ import annotations

from twisted.plugin import IPlugin
from zope.interface.verify import verifyObject

from disque_tx.plugins.interfaces import IClientProtocol
from disque_tx.plugins.values import Health
from disque_tx.protocols.http.health import reasons_not_ready
from disque_tx.protocols.http.plugin import HttpPlugin
from disque_tx.protocols.http.server.channel import (
    BODY_S,
    HEAD_S,
    INPUT_MAX,
    LINGER_S,
    UNREAD_S,
)
from disque_tx.protocols.http.server.routes import BODY_BYTES, JOB_BODY_BYTES
from disque_tx.protocols.http.site import IDLE_S
from disque_tx.services.clients.discovery import client_protocol
from tests.protocols.http.httpbench import HttpCase, parsed, request
from tests.services.nodebench import drive

_LIVE = request("GET", "/healthz/live")
_ADD = "/api/v1/queues/q/jobs"


class PluginTests(HttpCase):
    """The protocol among others."""

    def test_found(self) -> None:
        """``listen http`` works without any package besides this one."""
        plugin = client_protocol("http")
        verifyObject(IClientProtocol, plugin)
        verifyObject(IPlugin, HttpPlugin())
        self.assertIn("HTTP", plugin.description)
        self.assertTrue(plugin.factory(self.host))

    def test_listens(self) -> None:
        """The directive serves HTTP on the sockets of the daemon itself."""
        self.successResultOf(self.root.stopService())
        self.settings = self.make_settings(listen=[("http", f"unix:{self.path('h.sock')}")])
        self.started()
        client = self.dial(self.path("h.sock"))
        client.sendall(_LIVE + _LIVE)
        drive(self.reactor)
        first, rest = parsed(self.received(client))
        second, rest = parsed(rest)
        self.assertEqual((200, 200, b""), (first.status, second.status, rest))


class ConnectionTests(HttpCase):
    """A connection from start to end."""

    def test_listed(self) -> None:
        """Operators see HTTP clients in CLIENT LIST."""
        channel, _transport = self.connect()
        self.assertIn(b"name=http", self.call(b"CLIENT", b"LIST"))
        self.hang_up(channel)
        self.assertNotIn(b"name=http", self.call(b"CLIENT", b"LIST"))

    def test_protected_mode(self) -> None:
        """Without a password, other hosts are refused as with every protocol."""
        channel, transport = self.connect("192.0.2.1")
        answer, rest = parsed(transport.value())
        self.problem(403, "DENIED", answer)
        self.assertEqual(b"", rest)
        channel.dataReceived(_LIVE)
        self.reactor.advance(LINGER_S)
        self.assertTrue(transport.disconnected)
        self.assertEqual(answer, parsed(transport.value())[0])

    def test_maxclients(self) -> None:
        """HTTP clients count."""
        self.settings.maxclients = len(self.root.server.clients)
        _channel, transport = self.connect()
        self.problem(503, "ERR", parsed(transport.value())[0])

    def test_slow_head(self) -> None:
        """A client that sends a byte from time to time does not hold a connection forever."""
        channel, transport = self.connect()
        for byte in b"GET / HTTP/1.1\r\nX: ":
            channel.dataReceived(bytes([byte]))
            self.reactor.advance(HEAD_S / 25)
        self.reactor.advance(HEAD_S / 4)
        self.assertEqual(408, parsed(transport.value())[0].status)
        self.reactor.advance(LINGER_S)
        self.assertTrue(transport.disconnected)

    def test_times(self) -> None:
        """The head may take as long as the reference says, and so may the body."""
        for data, limit_s in ((b"GET / HT", 10), (request("POST", "/x", b"x" * 100)[:-50], 60)):
            channel, transport = self.connect()
            channel.dataReceived(data)
            self.reactor.advance(limit_s - 0.1)
            self.assertEqual(b"", transport.value())
            self.reactor.advance(0.1)
            self.assertEqual(408, parsed(transport.value())[0].status)

    def test_slow_body(self) -> None:
        """The same holds for a body."""
        channel, transport = self.connect()
        channel.dataReceived(request("POST", "/x", b"x" * 100)[:-50])
        self.reactor.advance(BODY_S)
        self.assertEqual(408, parsed(transport.value())[0].status)

    def test_fast_body(self) -> None:
        """A body that arrives faster than it is parsed is waited for, and then received on: nobody
        else lets the connection receive again, and the request would never be answered."""
        channel, transport = self.connect()
        data = request("POST", _ADD, {"body": "x" * 4 * INPUT_MAX})
        channel.dataReceived(data[: 2 * INPUT_MAX])
        self.assertEqual("paused", transport.producerState)
        self.reactor.advance(0.01)
        self.assertEqual("producing", transport.producerState)
        channel.dataReceived(data[2 * INPUT_MAX :])
        self.let_answer(transport)
        self.assertEqual(201, parsed(transport.value())[0].status)

    def test_idle(self) -> None:
        """An idle connection is closed after a minute."""
        channel, transport = self.connect()
        channel.dataReceived(_LIVE)
        self.reactor.advance(IDLE_S - 1)
        self.assertFalse(transport.disconnecting)
        self.reactor.advance(1)
        self.assertTrue(transport.disconnecting)

    def test_close(self) -> None:
        """``Connection: close`` is obeyed, also among other words."""
        channel, transport = self.connect()
        channel.dataReceived(request("GET", "/healthz/live", Connection="x, Close"))
        self.assertEqual("close", parsed(transport.value())[0].headers["connection"])
        self.assertTrue(transport.disconnecting)

    def test_last_answer(self) -> None:
        """A client that closes and does not take the answer does not hold it forever."""
        channel, transport = self.connect()
        channel.dataReceived(request("GET", "/healthz/live", Connection="close"))
        self.reactor.advance(UNREAD_S - 1)
        self.assertFalse(transport.disconnected)
        self.reactor.advance(1)
        self.assertTrue(transport.disconnected)

    def test_head(self) -> None:
        """HEAD is GET without the body."""
        channel, transport = self.connect()
        channel.dataReceived(request("HEAD", "/healthz/live"))
        head, _, body = transport.value().partition(b"\r\n\r\n")
        self.assertIn(b" 200 ", head)
        self.assertEqual(b"", body)


class LimitTests(HttpCase):
    """What is too large."""

    def test_head(self) -> None:
        """A head has a limited size and number of lines."""
        for lines in (
            b"X: " + b"x" * 20_000,
            b"\r\n".join(b"X%d: " % number + b"x" * 1_000 for number in range(30)),
            b"\r\n".join(b"X%d: y" % number for number in range(200)),
        ):
            data = b"GET /healthz/live HTTP/1.1\r\nHost: localhost\r\n" + lines + b"\r\n\r\n"
            self.problem(400, "ERR", self.exchange(data))

    def test_announced_body(self) -> None:
        """A body that is announced as too large for its route is refused at once."""
        for path, most in (
            ("/login", BODY_BYTES),
            (_ADD, JOB_BODY_BYTES),
            ("/api/v1/queues/q/pause", BODY_BYTES),
        ):
            head = request("POST", path, Content_Length=str(most + 1), Expect="100-continue")
            self.problem(413, "SIZE", self.exchange(head))

    def test_unwanted_body(self) -> None:
        """A body that will not be looked at is not waited for, and costs strangers and node
        nothing."""
        self.settings.requirepass = b"secret"
        for path, status in (("/x", 404), (_ADD, 401)):
            for size in ({"Content_Length": "100000"}, {"Transfer_Encoding": "chunked"}):
                channel, transport = self.connect()
                channel.dataReceived(request("POST", path, **size))
                self.assertEqual(status, parsed(transport.value())[0].status)
                self.reactor.advance(LINGER_S)
                self.assertTrue(transport.disconnected)

    def test_chunked_body(self) -> None:
        """A body whose size is not announced is not kept when it becomes too large."""
        channel, transport = self.connect()
        channel.dataReceived(request("POST", "/login", Transfer_Encoding="chunked"))
        chunk = b"800\r\n" + bytes(0x800) + b"\r\n"
        channel.dataReceived(2 * chunk)
        self.assertEqual(b"", transport.value())
        channel.dataReceived(chunk)
        self.problem(413, "SIZE", parsed(transport.value())[0])

    def test_refused_body_is_not_kept(self) -> None:
        """A client without rights cannot fill the memory."""
        channel, transport = self.connect()
        channel.dataReceived(request("POST", "/x", b"x" * 1_000)[:-1])
        self.assertEqual(b"", channel.requests[0].content.getvalue())
        channel.dataReceived(b"x")
        self.assertEqual(404, parsed(transport.value())[0].status)


class PasswordTests(HttpCase):
    """Passwords and roles."""

    def setUp(self) -> None:
        super().setUp()
        self.settings.requirepass = b"secret"
        self.settings.readonly_password = b"look"

    def test_required(self) -> None:
        """Without the password nothing but the health is answered."""
        self.assertEqual(200, self.http("GET", "/healthz/live").status)
        self.assertEqual(200, self.http("GET", "/healthz/ready").status)

    def test_protected_mode_is_off(self) -> None:
        """With a password, other hosts are served."""
        channel, transport = self.connect("192.0.2.1")
        channel.dataReceived(_LIVE)
        self.assertEqual(200, parsed(transport.value())[0].status)


class HealthTests(HttpCase):
    """Health for load balancers."""

    def test_ready(self) -> None:
        """A node that serves is alive, ready and started."""
        for name in ("live", "ready", "startup"):
            answer = self.http("GET", f"/healthz/{name}")
            self.assertEqual((200, {"status": "ok", "reasons": []}), (answer.status, answer.json))
            self.assertEqual("nosniff", answer.headers["x-content-type-options"])

    def test_leaving(self) -> None:
        """A node that leaves the cluster is alive and gets no more clients."""
        self.call(b"CLUSTER", b"LEAVING", b"yes")
        answer = self.http("GET", "/healthz/ready")
        self.assertEqual(503, answer.status)
        self.assertEqual(["the node is leaving the cluster"], answer.json["reasons"])
        self.assertEqual(200, self.http("GET", "/healthz/live").status)

    def test_memory(self) -> None:
        """Above 95 % of ``maxmemory`` clients should go elsewhere."""
        self.call(b"ADDJOB", b"q", bytes(1_000), b"0")
        self.call(b"CONFIG", b"SET", b"maxmemory", b"1000")
        self.assertEqual(503, self.http("GET", "/healthz/ready").status)

    def test_no_details(self) -> None:
        """Strangers learn that the disk fails, and not which path is on it."""
        health = Health(True, False, False, False, "No space left on device: /secret/path")
        self.assertEqual(["the log cannot be written"], reasons_not_ready(health))

    def test_not_started(self) -> None:
        """A node that loads its log is alive and not started."""
        self.root._lifecycle.serving = False
        self.assertEqual(200, self.http("GET", "/healthz/live").status)
        self.assertEqual(503, self.http("GET", "/healthz/startup").status)
        self.assertEqual(503, self.http("GET", "/healthz/ready").status)
        self.root._lifecycle.serving = True
