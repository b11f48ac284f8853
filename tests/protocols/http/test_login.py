"""Sessions of people who log in with a browser."""

from __future__ import annotations

from typing import Any

from twisted.internet.address import IPv4Address, IPv6Address
from twisted.internet.error import ConnectionDone
from twisted.internet.testing import StringTransport
from twisted.python.failure import Failure

from disque_tx.plugins.values import Role
from disque_tx.protocols.http.server.sessions import (
    IDLE_S,
    LIFETIME_S,
    NETWORK_SESSIONS_MAX,
    SESSIONS_MAX,
)
from tests.protocols.http.httpbench import Answer, HttpCase, request

_ADD = "/api/v1/queues/q/jobs"
_OWN = "http://127.0.0.1:7780"
_BROWSER = {"Origin": _OWN, "Sec_Fetch_Site": "same-origin"}


class LoginCase(HttpCase):
    """A node with both passwords."""

    def setUp(self) -> None:
        super().setUp()
        self.settings.requirepass, self.settings.readonly_password = b"secret", b"look"

    def log_in(self, password: str = "secret", **headers: str) -> Answer:
        """The answer to a login of the console."""
        fields = {**_BROWSER, **headers}
        return self.http("POST", "/login", {"password": password}, **fields)

    def cookie(self, answer: Answer) -> str:
        """The cookie that an answer sets, as the browser sends it back."""
        return answer.headers["set-cookie"].partition(";")[0]

    def by_cookie(self, cookie: str, method: str, path: str, body: Any = None) -> Answer:
        """The answer to a request of the console."""
        return self.http(method, path, body, Cookie=cookie, **_BROWSER)


class SessionTests(LoginCase):
    """What a session is good for, and when it ends."""

    def test_life(self) -> None:
        """The password is sent once; afterwards the cookie stands for it, until the logout."""
        self.problem(401, "NOAUTH", self.http("GET", "/api/v1/queues"))
        answer = self.log_in()
        self.assertEqual({"role": "full", "password_needed": True}, answer.json)
        cookie = self.cookie(answer)
        self.assertEqual(200, self.by_cookie(cookie, "GET", "/api/v1/info").status)
        self.assertEqual(201, self.by_cookie(cookie, "POST", _ADD, {"body": "x"}).status)
        self.assertEqual("full", self.by_cookie(cookie, "GET", "/api/v1/session").json["role"])
        answer = self.by_cookie(cookie, "POST", "/logout")
        self.assertEqual({"role": "none", "password_needed": True}, answer.json)
        self.assertIn("Max-Age=0", answer.headers["set-cookie"])
        self.problem(401, "NOAUTH", self.by_cookie(cookie, "GET", "/api/v1/info"))

    def test_attributes(self) -> None:
        """No program of a page can read the cookie, no other site can cause it to be sent, and it
        does not leave a connection with TLS, be it that of a proxy."""
        value = self.log_in().headers["set-cookie"]
        for word in ("HttpOnly", "SameSite=Strict", "Path=/"):
            self.assertIn(word, value)
        self.assertNotIn("Secure", value)
        value = self.log_in(Origin="https://127.0.0.1:7780").headers["set-cookie"]
        self.assertIn("Secure", value)

    def test_form(self) -> None:
        """A form without a program logs in, too, and leads to the console."""
        fields = {**_BROWSER, "Content_Type": "application/x-www-form-urlencoded"}
        answer = self.http("POST", "/login", b"password=secret", **fields)
        self.assertEqual((303, "/"), (answer.status, answer.headers["location"]))
        cookie = self.cookie(answer)
        self.assertEqual(200, self.by_cookie(cookie, "GET", "/api/v1/info").status)
        for body in (b"password=", b"a=1&b=2&c=3", b"\xff", b""):
            self.problem(400, "ERR", self.http("POST", "/login", body, **fields))

    def test_reader(self) -> None:
        """With the read-only password one looks, and changes nothing."""
        cookie = self.cookie(self.log_in("look"))
        self.assertEqual("reader", self.by_cookie(cookie, "GET", "/api/v1/session").json["role"])
        self.assertEqual(200, self.by_cookie(cookie, "GET", "/api/v1/info").status)
        self.problem(403, "NOPERM", self.by_cookie(cookie, "POST", _ADD, {"body": "x"}))
        self.assertEqual(200, self.by_cookie(cookie, "POST", "/logout").status)

    def test_rotated(self) -> None:
        """A token that somebody planted in the browser before the login is worth nothing after
        it, and neither is the one of the session before."""
        before = self.cookie(self.log_in("look"))
        answer = self.log_in("secret", Cookie=before)
        self.assertNotEqual(before, self.cookie(answer))
        self.problem(401, "NOAUTH", self.by_cookie(before, "GET", "/api/v1/info"))
        planted = before.partition("=")[0] + "=planted"
        self.assertNotEqual(planted, self.cookie(self.log_in("secret", Cookie=planted)))
        self.problem(401, "NOAUTH", self.by_cookie(planted, "GET", "/api/v1/info"))

    def test_password_changes(self) -> None:
        """Who changes a password locks out everybody who used the former one."""
        cookie = self.cookie(self.log_in())
        self.settings.requirepass = b"another"
        self.problem(401, "NOAUTH", self.by_cookie(cookie, "GET", "/api/v1/info"))

    def test_guesses(self) -> None:
        """Guessing is as slow here as with the header."""
        for _ in range(10):
            self.problem(401, "NOAUTH", self.log_in("guess"))
        answer = self.log_in()
        self.problem(429, "TRYLATER", answer)
        self.assertNotIn("set-cookie", answer.headers)

    def test_guesses_by_all_protocols(self) -> None:
        """A guess is a guess, by AUTH or by HTTP, from whichever address of this host."""
        for number in range(10):
            reply = self.auth(f"127.0.0.{number + 5}", b"guess")
            self.assertEqual(b"-ERR invalid password\r\n", reply)
        self.assertEqual(
            b"-TRYLATER Too many wrong passwords from this network: try again in 6 seconds.\r\n",
            self.auth("::1", b"secret"),
        )
        self.problem(429, "TRYLATER", self.log_in())
        _channel, transport = self.connect("192.0.2.1")
        _channel.dataReceived(request("POST", "/login", {"password": "secret"}, **_BROWSER))
        self.assertIn(b" 200 ", transport.value())

    def auth(self, host: str, password: bytes) -> bytes:
        """The reply to AUTH of a client at this address."""
        protocol = self.host.disque_clients().buildProtocol(None)
        address = IPv6Address if ":" in host else IPv4Address
        transport = StringTransport(peerAddress=address("TCP", host, 5001))
        protocol.makeConnection(transport)
        protocol.dataReceived(b"AUTH %s\r\n" % password)
        protocol.connectionLost(Failure(ConnectionDone()))
        return bytes(transport.value())

    def test_without_password(self) -> None:
        """Where no password is set, the console asks for none."""
        self.settings.requirepass = b""
        answer = self.http("GET", "/api/v1/session")
        self.assertEqual({"role": "full", "password_needed": False}, answer.json)
        answer = self.log_in("x")
        self.assertEqual("full", answer.json["role"])
        self.assertNotIn("set-cookie", answer.headers)

    def test_unknown(self) -> None:
        """Strangers learn whether a password is set, and nothing else."""
        answer = self.http("GET", "/api/v1/session")
        self.assertEqual({"role": "none", "password_needed": True}, answer.json)
        for body in ({}, {"password": ""}, {"password": 1}, {"password": "x" * 2000}):
            self.problem(400, "ERR", self.http("POST", "/login", body))


class StreamTests(LoginCase):
    """A stream of events lasts as long as what admitted it."""

    def streaming(self, **headers: str) -> StringTransport:
        """A connection on which events come."""
        channel, transport = self.connect()
        channel.dataReceived(request("GET", "/api/v1/events", **headers))
        self.let_answer(transport)
        self.assertIn(b"200 OK", transport.value())
        self.add(transport)
        self.assertFalse(ended(transport))
        return transport

    def add(self, transport: StringTransport) -> None:
        """Let something happen that the stream shows, if it goes on."""
        transport.clear()
        self.call(b"ADDJOB", b"q", b"x", b"0")
        self.let_answer(transport)

    def test_logout(self) -> None:
        """Who has logged out sees nothing more."""
        cookie = self.cookie(self.log_in())
        transport = self.streaming(Cookie=cookie, **_BROWSER)
        self.by_cookie(cookie, "POST", "/logout")
        self.add(transport)
        self.assertTrue(ended(transport))

    def test_password_changes(self) -> None:
        """Who knows the old password only sees nothing more."""
        transport = self.streaming(Authorization="Bearer look")
        self.settings.readonly_password = b"new"
        self.add(transport)
        self.assertTrue(ended(transport))


def ended(transport: StringTransport) -> bool:
    """Whether the last chunk of an answer was sent, and no event in this one."""
    return bytes(transport.value()) == b"0\r\n\r\n"


class SiteTests(LoginCase):
    """A browser sends cookies along with requests that others caused."""

    def test_foreign(self) -> None:
        """A page of another site, or of another port of this host, neither changes nor reads."""
        cookie = self.cookie(self.log_in())
        for fields in (
            {"Sec_Fetch_Site": "cross-site"}, {"Sec_Fetch_Site": "same-site"},
            {"Origin": "http://127.0.0.1:8000"},
        ):  # fmt: skip
            for method, path in (("GET", "/api/v1/info"), ("POST", _ADD), ("POST", "/logout")):
                body = {"body": "x"} if path == _ADD else None
                answer = self.http(method, path, body, Cookie=cookie, **fields)
                self.problem(403, "ORIGIN", answer)
        self.assertEqual(0, self.call(b"QLEN", b"q"))
        self.assertEqual(200, self.by_cookie(cookie, "GET", "/api/v1/info").status)

    def test_silent(self) -> None:
        """A change by cookie needs the word of the browser on where it comes from."""
        cookie = self.cookie(self.log_in())
        answer = self.http("POST", _ADD, {"body": "x"}, Cookie=cookie)
        self.problem(403, "ORIGIN", answer)
        self.assertEqual(200, self.http("GET", "/api/v1/info", Cookie=cookie).status)

    def test_login(self) -> None:
        """No page of another site logs anybody in."""
        answer = self.log_in(Origin="http://evil.example")
        self.problem(403, "ORIGIN", answer)
        self.assertNotIn("set-cookie", answer.headers)

    def test_header_first(self) -> None:
        """Who sends a password means that one, whatever cookies there are."""
        cookie = self.cookie(self.log_in())
        answer = self.http("GET", "/api/v1/session", Cookie=cookie, Authorization="Bearer look")
        self.assertEqual("reader", answer.json["role"])


class TableTests(LoginCase):
    """The table of sessions."""

    def test_times(self) -> None:
        """A browser that is left alone is logged out, and so is one that never rests, once a
        day."""
        sessions = self.factory.sessions
        idle, busy = sessions.begin(Role.FULL, "a"), sessions.begin(Role.FULL, "a")
        for _ in range(LIFETIME_S // IDLE_S):
            self.assertEqual(Role.FULL, sessions.role(busy))
            self.reactor.advance(IDLE_S)
        self.assertEqual(Role.NONE, sessions.role(idle))
        self.assertEqual(Role.FULL, sessions.role(busy))
        self.reactor.advance(1)
        self.assertEqual(Role.NONE, sessions.role(busy))
        self.assertEqual(0, len(sessions))

    def test_bounded(self) -> None:
        """Logins without end take no memory without end."""
        sessions = self.factory.sessions
        tokens = [
            sessions.begin(Role.READER, str(number % 50)) for number in range(SESSIONS_MAX + 10)
        ]
        self.assertEqual(SESSIONS_MAX, len(sessions))
        self.assertEqual(SESSIONS_MAX + 10, len(set(tokens)))
        self.assertEqual(Role.NONE, sessions.role(tokens[9]))
        self.assertEqual(Role.READER, sessions.role(tokens[10]))
        sessions.begin(Role.READER, "new")
        roles = [sessions.role(tokens[number]) for number in (10, 11)]
        self.assertEqual([Role.READER, Role.NONE], roles)  # the one in use stays

    def test_others(self) -> None:
        """Who logs in again and again logs out nobody but readers of his own network."""
        sessions = self.factory.sessions
        admin, near = sessions.begin(Role.FULL, "a"), sessions.begin(Role.READER, "a")
        far = sessions.begin(Role.READER, "b")
        for _ in range(2 * SESSIONS_MAX):
            sessions.begin(Role.READER, "a")
        roles = [sessions.role(token) for token in (admin, near, far)]
        self.assertEqual([Role.FULL, Role.NONE, Role.READER], roles)
        self.assertEqual(NETWORK_SESSIONS_MAX + 2, len(sessions))
