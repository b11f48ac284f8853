"""What strangers and hostile web pages send: each case is refused, and costs little."""

from __future__ import annotations

import gzip

from disque_tx.protocols.http.server.channel import HEAD_S, INPUT_MAX, LINGER_S
from disque_tx.protocols.http.site import IDLE_S
from tests.protocols.http.api.queues.test_queues import SlicedCase, letter
from tests.protocols.http.httpbench import parsed, request

_ADD = "/api/v1/queues/q/jobs"
#: Headers that some part of the program reads, and one that none does.
_READ_HEADERS = (
    b"Cookie", b"If-None-Match", b"Host", b"Origin", b"Sec-Fetch-Site", b"Authorization",
    b"Content-Type", b"Content-Encoding", b"Accept", b"Idempotency-Key", b"Connection", b"Expect",
    b"User-Agent",
)  # fmt: skip


class BrowserTests(SlicedCase):
    """What a page of another site can make a browser send."""

    def nothing_happened(self) -> None:
        """No job was added."""
        self.assertEqual(0, self.call(b"QLEN", b"q"))

    def test_form(self) -> None:
        """1: a form of another site adds nothing."""
        fields = {
            "Content_Type": "application/x-www-form-urlencoded",
            "Origin": "http://evil.example",
        }
        self.problem(403, "ORIGIN", self.http("POST", _ADD, b"body=x", **fields))
        self.nothing_happened()

    def test_plain_form(self) -> None:
        """2: a form whose text looks like JSON adds nothing, even without Origin."""
        answer = self.http("POST", _ADD, b'{"body":"x"}', Content_Type="text/plain")
        self.problem(415, "TYPE", answer)
        self.nothing_happened()

    def test_fetch(self) -> None:
        """3: a program of another site changes nothing, and no header lets it read answers."""
        fields = {"Sec_Fetch_Site": "cross-site", "Origin": "http://evil.example"}
        answer = self.http("POST", _ADD, {"body": "x"}, **fields)
        self.problem(403, "ORIGIN", answer)
        for name in answer.headers:
            self.assertFalse(name.startswith("access-control-"), name)
        self.nothing_happened()

    def test_preflight(self) -> None:
        """4: the question of a browser whether another site may is answered with no."""
        fields = {"Origin": "http://evil.example", "Access_Control_Request_Method": "POST"}
        answer = self.http("OPTIONS", _ADD, **fields)
        self.problem(405, "METHOD", answer)
        self.assertNotIn("access-control-allow-origin", answer.headers)

    def test_image(self) -> None:
        """5: an image tag, which can only GET, changes nothing."""
        for path in ("/api/v1/queues/q/lease", "/api/v1/queues/q/pause", "/api/v1/queues/q/flush"):
            self.problem(405, "METHOD", self.http("GET", path, Sec_Fetch_Site="cross-site"))
        self.assertEqual(0, self.call(b"QLEN", b"q"))

    def test_expensive_images(self) -> None:
        """31: nor can it make a browser ask this node for anything that costs: not one route is
        served to pages of other sites, but for links to the console and the health."""
        foreign = ({"Sec_Fetch_Site": "cross-site"}, {"Origin": "http://evil.example"})
        for route in self.factory.routes:
            path = route.path
            for name in route.names:
                path = path.replace(f"{{{name}}}", "main.js")
            for fields in foreign:
                answer = self.slow(route.method, path, **fields)
                if route.page or route.path.startswith("/healthz/"):
                    self.assertEqual(200, answer.status, path)
                else:
                    self.problem(403, "ORIGIN", answer)

    def test_own_requests(self) -> None:
        """32: programs, which send no such headers, the console and people who type an address
        are served as ever."""
        for fields in ({}, {"Sec_Fetch_Site": "none"}, {"Sec_Fetch_Site": "same-origin"}):
            for path in ("/metrics", "/api/v1/info", "/api/v1/session"):
                self.assertEqual(200, self.slow("GET", path, **fields).status, path)

    def test_rebinding(self) -> None:
        """6: a name that was made to resolve to this node is not served, whatever it asks."""
        for path in ("/metrics", "/", "/api/v1/config", "/healthz"):
            self.problem(421, "HOST", self.http("GET", path, Host="evil.example:7780"))

    def test_health_by_any_name(self) -> None:
        """A load balancer may ask by any name; what it is told is in no other answer."""
        for host in ("queue.example.com", "disque:7780"):
            self.assertEqual(200, self.http("GET", "/healthz/ready", Host=host).status)

    def test_override(self) -> None:
        """7: a header or parameter does not change the method."""
        job = self.http("POST", _ADD, {"body": "x"}).json["url"]
        for name in ("X_HTTP_Method_Override", "X_Method_Override", "X_HTTP_Method"):
            self.assertEqual("queued", self.http("GET", job, **{name: "DELETE"}).json["state"])
        self.problem(400, "ERR", self.http("GET", f"{job}?_method=DELETE"))

    def test_markup(self) -> None:
        """8: markup in names, bodies and reasons never becomes a page."""
        text = "<script>alert(1)</script>"
        self.http("POST", "/api/v1/queues/%3Cscript%3E/jobs", {"body": text})
        for path in (
            "/api/v1/queues/%3Cscript%3E/peek", "/api/v1/queues", "/api/v1/%3Cscript%3E",
            "/api/v1/queues?%3Cscript%3E=1", "/metrics/detailed",
        ):  # fmt: skip
            headers = self.slow("GET", path).headers
            self.assertNotIn("html", headers["content-type"])
            self.assertEqual("nosniff", headers["x-content-type-options"])

    def test_frames(self) -> None:
        """9: no page can put an answer into a frame."""
        headers = self.http("GET", "/metrics").headers
        self.assertEqual("DENY", headers["x-frame-options"])
        self.assertIn("frame-ancestors 'none'", headers["content-security-policy"])

    def test_cookie(self) -> None:
        """10: a cookie that somebody planted is neither a password nor a session."""
        self.settings.requirepass = b"secret"
        port = self.connect()[1].getHost().port
        for name in ("session", "password", f"disque-session-{port}"):
            answer = self.http("GET", "/api/v1/nodes", Cookie=f"{name}=secret")
            self.problem(401, "NOAUTH", answer)
            self.assertNotIn("set-cookie", answer.headers)

    def test_secrets_in_urls(self) -> None:
        """11: a password in a URL is not accepted, so nobody gets used to it."""
        self.settings.requirepass = b"secret"
        for query in ("?password=secret", "?access_token=secret"):
            self.problem(401, "NOAUTH", self.http("GET", f"/api/v1/nodes{query}"))

    def test_markup_of_clients(self) -> None:
        """26: neither do reasons of failures, names of clients and kinds of errors that others
        chose."""
        markup = b"<img/src=x/onerror=alert(1)>"
        ((_queue, job_id, _body),) = self.leased()
        self.call(b"NACK", b"REASON", markup, job_id)
        self.call(b"ADDJOB", b"dead:q", letter(markup.decode()), b"0")
        named, _transport = self.connect()
        assert named.connection is not None
        named.connection.rename(markup)
        for path in (
            "/api/v1/queues/q/dead-letters", "/api/v1/clients", "/api/v1/jobs/" + job_id.decode(),
            "/api/v1/events?kinds=%3Cimg%3E", "/api/v1/policies/%3Cimg%3E", "/api/v1/slowlog",
        ):  # fmt: skip
            headers = self.slow("GET", path.replace("+", "%2B")).headers
            self.assertIn("json", headers["content-type"], path)
            self.assertEqual("nosniff", headers["x-content-type-options"], path)

    def leased(self) -> list[list[bytes]]:
        """A job in flight."""
        self.call(b"ADDJOB", b"q", b"x", b"0")
        found: list[list[bytes]] = self.call(b"GETJOB", b"FROM", b"q")
        return found


class WireTests(SlicedCase):
    """What is not quite HTTP."""

    def refused(self, data: bytes) -> None:
        """The first answer is 400, it is the only one, and the connection ends."""
        channel, transport = self.connect()
        channel.dataReceived(data)
        answer, rest = parsed(transport.value())
        self.assertEqual((400, b""), (answer.status, rest), data)
        self.reactor.advance(LINGER_S)
        self.assertTrue(transport.disconnected)
        self.assertEqual(0, self.call(b"QLEN", b"q"))

    def test_two_lengths(self) -> None:
        """12: a request with two lengths, which two programs cut differently, is refused."""
        smuggled = request("POST", _ADD, {"body": "x"})
        for lines in (
            b"Content-Length: 5\r\nContent-Length: 6\r\n",
            b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
            b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
            b"Transfer-Encoding: chunked, identity\r\n",
            b"Transfer-Encoding: xchunked\r\n",
            b"Content-Length: +5\r\n",
            b"Content-Length: 5, 5\r\n",
            b"Content-Length : 5\r\n",
            b"Content-Length: " + b"5" * 5_000 + b"\r\n",
            b"Transfer-Encoding: identity\r\n",
            b"Transfer-Encoding: identity\r\nContent-Length: 5\r\n",
        ):
            head = b"POST %s HTTP/1.1\r\nHost: localhost\r\n" % _ADD.encode()
            self.refused(head + lines + b"\r\n0\r\n\r\n" + smuggled)

    def test_chunks(self) -> None:
        """13: malformed chunks end the connection."""
        head = b"POST %s HTTP/1.1\r\nHost: localhost\r\n" % _ADD.encode()
        head += b"Transfer-Encoding: chunked\r\n\r\n"
        for chunk in (b"zz\r\n", b"-1\r\n", b"0x5\r\n", b"5" * 2_000, b"1\r\nabc\r\n"):
            self.refused(head + chunk)

    def test_lines(self) -> None:
        """14: malformed request lines and headers are refused."""
        for data in (
            b"\x16\x03\x01\x00\xa5\x01\r\n", b"GET\r\n", b"GET /\r\n", b"GET / HTTP/9.9 x\r\n",
            b"GET / HTTP/1.1\r\nnonsense\r\n\r\n", b"GET / HTTP/1.1\r\nA\0B: x\r\n\r\n",
            b"*1\r\n$4\r\nPING\r\n",
        ):  # fmt: skip
            self.refused(data)
        for hosts in (b"", b"Host: localhost\r\nHost: evil.example\r\n"):
            answer = self.exchange(b"GET /healthz/live HTTP/1.1\r\n" + hosts + b"\r\n")
            self.problem(400, "ERR", answer)

    def test_folded(self) -> None:
        """28: a header that goes on in a second line, which programs read differently, is
        refused."""
        for lines in (b" x: y\r\n", b"X: y\r\n\tz\r\n", b"Content-Length:\r\n 5\r\n"):
            self.refused(b"GET / HTTP/1.1\r\nHost: localhost\r\n" + lines + b"\r\n")

    def test_bytes_of_headers(self) -> None:
        """29: bytes that are no text are refused in every header, and are no fault of the
        program, which would fill its log."""
        port = str(self.connect()[1].getHost().port).encode()
        for name in _READ_HEADERS:
            for value in (b"\xff", b"a=\xff", b"disque-session-" + port + b"=\xff", b"Bearer \xff"):
                self.refused(
                    b"GET /console/main.js HTTP/1.1\r\nHost: localhost\r\n"
                    + name + b": " + value + b"\r\n\r\n"
                )  # fmt: skip

    def test_bytes_of_paths(self) -> None:
        """30: nor are they a fault in any part of a path or query."""
        for route in self.factory.routes:
            if route.method != "GET" or "events" in route.path:
                continue
            path = route.path
            for name in route.names:
                path = path.replace(f"{{{name}}}", "%FF%00%ED%A0%80")
            for query in ("", *(f"?{one.name}=%FF" for one in route.parameters)):
                answer = self.slow("GET", path + query)
                self.assertIn(answer.status, (200, 400, 404), path + query)

    def test_injection(self) -> None:
        """15: no input becomes a header of an answer."""
        answer = self.http("POST", "/api/v1/queues/a%0d%0aSet-Cookie:%20x=1/jobs", {"body": "x"})
        self.assertEqual(201, answer.status)
        self.assertNotIn("set-cookie", answer.headers)
        answer = self.http("GET", "/api/v1/%0d%0aSet-Cookie:%20x=1")
        self.assertNotIn("set-cookie", answer.headers)

    def test_paths(self) -> None:
        """16: no path leads to a file."""
        for path in (
            "/../../etc/passwd", "/healthz/../api/v1/config", "/..%2f..%2fetc/passwd", "/./metrics",
            "/%2e%2e/%2e%2e/etc/passwd", "//etc/passwd", "/api/v1\\config", "/metrics%00",
        ):  # fmt: skip
            self.assertIn(self.http("GET", path).status, (400, 404), path)

    def test_proxy(self) -> None:
        """17: this is no proxy."""
        self.assertEqual(400, self.http("GET", "http://169.254.169.254/latest").status)
        self.assertIn(self.http("CONNECT", "evil.example:443").status, (400, 405))
        self.assertEqual(405, self.http("TRACE", "/metrics").status)

    def test_upgrade(self) -> None:
        """18: other protocols on the connection are not begun."""
        answer = self.http("GET", "/healthz/live", Upgrade="h2c, websocket", Connection="Upgrade")
        self.assertEqual(200, answer.status)
        self.assertNotIn("upgrade", answer.headers)

    def test_compressed(self) -> None:
        """19: a small body that would become a large one is refused."""
        bomb = gzip.compress(bytes(10_000_000))
        self.problem(415, "TYPE", self.http("POST", _ADD, bomb, Content_Encoding="gzip"))

    def test_nested(self) -> None:
        """20: deeply nested JSON and numbers of a million digits are refused, and nothing else
        happens."""
        for body in (b'{"body":' + b"[" * 500_000, b'{"ttl_s":' + b"9" * 1_000_000 + b"}"):
            self.problem(400, "ERR", self.http("POST", _ADD, body))


class PatienceTests(SlicedCase):
    """What is slow, much, or without end."""

    def test_slowloris(self) -> None:
        """21: many slow heads do not stay, and others are served meanwhile."""
        slow = [self.connect() for _ in range(20)]
        for channel, _transport in slow:
            channel.dataReceived(b"GET / HTTP/1.1\r\nX: ")
        self.assertEqual(200, self.http("GET", "/healthz/live").status)
        self.reactor.advance(HEAD_S)
        self.reactor.advance(LINGER_S)
        self.assertTrue(all(transport.disconnected for _channel, transport in slow))

    def test_unread(self) -> None:
        """22: of a client that reads no answers no further request is read, until it does, and
        its connection ends after a while."""
        for size in (1, 200):
            channel, transport = self.connect()
            channel.pauseProducing()
            channel.dataReceived(request("GET", "/healthz/live") * size)
            self.reactor.advance(0)
            self.assertEqual(b"", transport.value())
            self.assertLess(len(channel._input), 2 * INPUT_MAX)
            channel.resumeProducing()
            self.reactor.advance(0)
            self.assertIn(b" 200 ", transport.value())
            channel.pauseProducing()
            self.reactor.advance(IDLE_S)
            self.assertTrue(transport.disconnecting)
            self.reactor.advance(15)
            self.assertTrue(transport.disconnected)

    def test_too_much_input(self) -> None:
        """Nothing more is received from a client whose requests wait."""
        channel, transport = self.connect()
        channel.pauseProducing()
        transport.producerState = "producing"
        channel.dataReceived(bytes(INPUT_MAX + 1))
        self.assertEqual("paused", transport.producerState)

    def test_pipelined(self) -> None:
        """23: requests sent ahead wait, each for a turn of its own, so that others are served in
        between, and all are answered."""
        channel, transport = self.connect()
        channel.dataReceived(request("GET", "/healthz/live") * 50)
        self.assertEqual(b"", parsed(transport.value())[1])
        self.reactor.advance(0)
        data, count = transport.value(), 0
        while data:
            answer, data = parsed(data)
            self.assertEqual(200, answer.status)
            count += 1
        self.assertEqual(50, count)

    def test_brute_force(self) -> None:
        """24: guessing the password ends after ten guesses, on any number of connections."""
        self.settings.requirepass = b"secret"
        codes = [
            self.http("GET", "/api/v1/nodes", Authorization=f"Bearer {guess}").status
            for guess in range(15)
        ]
        self.assertEqual([401] * 10 + [429] * 5, codes)
        answer = self.http("GET", "/api/v1/nodes", Authorization="Bearer secret")
        self.problem(429, "TRYLATER", answer)
        self.assertIn("retry-after", answer.headers)

    def test_large_head(self) -> None:
        """27: a head that never ends does not fill the memory, whatever it consists of."""
        for piece in (b"X: " + b"x" * 1_000 + b"\r\n", b"X: y\r\n", b"x" * 1_000):
            channel, transport = self.connect()
            channel.dataReceived(b"GET / HTTP/1.1\r\nHost: localhost\r\n")
            sent = 0
            while not transport.value():
                channel.dataReceived(piece)
                sent += len(piece)
            self.problem(400, "ERR", parsed(transport.value())[0])
            self.assertLess(sent, 33_000)

    def test_queries(self) -> None:
        """25: patterns, numbers and queries that would cost much are refused."""
        for path in (
            "/api/v1/queues?match=" + "*a" * 1_000, "/api/v1/queues?limit=999999999",
            "/api/v1/queues?offset=" + "9" * 5_000, "/metrics/detailed?queue=(a%2B)%2B",
            "/api/v1/queues?" + "&".join(f"a{n}=1" for n in range(1_000)),
            "/api/v1/queues/q/peek?count=100000", "/api/v1/queues?match=%ff",
        ):  # fmt: skip
            self.assertEqual(400, self.slow("GET", path).status, path[:60])
