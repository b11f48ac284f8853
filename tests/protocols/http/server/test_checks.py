"""Which requests are served."""

from __future__ import annotations

from base64 import b64encode

from twisted.trial.unittest import SynchronousTestCase
from twisted.web.http_headers import Headers

from disque_tx.protocols.http.server.checks import check_host, check_origin, host_name, password_of
from disque_tx.protocols.http.server.problems import Problem


def headers(**fields: str) -> Headers:
    """Headers of a request."""
    return Headers({name.replace("_", "-"): [value] for name, value in fields.items()})


class HostTests(SynchronousTestCase):
    """The host that a request is meant for."""

    def test_own(self) -> None:
        """Addresses, localhost and configured names are this node's."""
        for name in (
            "127.0.0.1", "127.0.0.1:7780", "[::1]:7780", "localhost", "LOCALHOST:80",
            "queue.example", "Queue.Example.:80", "a.localhost",
        ):  # fmt: skip
            check_host(headers(Host=name), ["queue.example"])

    def test_rebinding(self) -> None:
        """A page whose author lets its name resolve to this node gets nothing."""
        for name in ("evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "1"):
            problem = self.assertRaises(Problem, check_host, headers(Host=name), ["queue.example"])
            self.assertEqual(421, problem.status, name)

    def test_malformed(self) -> None:
        """A host that two programs could read differently is refused."""
        for name in ("", "a@localhost", "localhost/x", "localhost:port", "[::1", "a?b"):
            problem = self.assertRaises(Problem, host_name, name.encode())
            self.assertEqual(400, problem.status, name)
        twice = Headers({"Host": ["localhost", "evil.example"]})
        self.assertEqual(400, self.assertRaises(Problem, check_host, twice, []).status)
        self.assertEqual(400, self.assertRaises(Problem, check_host, Headers(), []).status)


class SiteTests(SynchronousTestCase):
    """The site that asks for something."""

    def test_own(self) -> None:
        """Programs, which send no such headers, and our own pages may use the API."""
        check_origin(headers(Host="localhost:1"))
        check_origin(headers(Host="localhost:1", Origin="http://localhost:1"))
        check_origin(headers(Host="localhost:1", Sec_Fetch_Site="same-origin"))
        check_origin(headers(Host="localhost:1", Sec_Fetch_Site="none"))

    def test_foreign(self) -> None:
        """Forms and programs of other sites, other ports included, may not."""
        for fields in (
            {"Sec_Fetch_Site": "cross-site"}, {"Sec_Fetch_Site": "same-site"},
            {"Origin": "http://evil.example"}, {"Origin": "null"},
            {"Origin": "http://localhost:2"}, {"Origin": ""},
        ):  # fmt: skip
            given = headers(Host="localhost:1", **fields)
            problem = self.assertRaises(Problem, check_origin, given)
            self.assertEqual((403, "ORIGIN"), (problem.status, problem.code), fields)


class PasswordTests(SynchronousTestCase):
    """The password of a request."""

    def test_schemes(self) -> None:
        """Programs send a token, browsers and curl a user and a password; the user is ignored."""
        basic = b64encode(b"me:se:cret").decode()
        for value, password in (
            ("Bearer secret", b"secret"), ("bearer  secret", b"secret"),
            (f"Basic {basic}", b"se:cret"),
        ):  # fmt: skip
            self.assertEqual(password, password_of(headers(Authorization=value)))
        self.assertIsNone(password_of(Headers()))

    def test_malformed(self) -> None:
        """What cannot be understood is not treated as no password."""
        for value in ("", "Bearer", "Basic !!!", "Basic " + b64encode(b"x").decode(), "Digest x",
                      "Bearer " + "x" * 2000):  # fmt: skip
            problem = self.assertRaises(Problem, password_of, headers(Authorization=value))
            self.assertEqual(400, problem.status, value)
