"""Paths, methods and the checks of every request."""

from __future__ import annotations

from tests.protocols.http.httpbench import HttpCase


class RoutingTests(HttpCase):
    """Which function answers."""

    def test_unknown(self) -> None:
        """A wrong path is a problem document, not a page."""
        for path in ("/console", "/healthz", "/healthz/live/", "/api/v1/nothing", "//healthz/live"):
            self.problem(404, "PATH", self.http("GET", path))

    def test_method(self) -> None:
        """A wrong method is answered with those that are allowed."""
        answer = self.http("POST", "/healthz/live")
        self.problem(405, "METHOD", answer)
        self.assertEqual("GET, HEAD", answer.headers["allow"])

    def test_unknown_parameter(self) -> None:
        """A typing error in a parameter does not change the meaning of a request."""
        answer = self.http("GET", "/healthz/live?verbos=1")
        self.problem(400, "ERR", answer)
        self.assertIn("verbos", answer.json["detail"])

    def test_target(self) -> None:
        """Only paths are served; this is no proxy."""
        for target in ("http://evil.example/healthz/live", "*", "evil.example:80"):
            self.assertEqual(400, self.http("GET", target).status)

    def test_headers(self) -> None:
        """No answer can be embedded, sniffed or kept by a browser, errors included."""
        for path in ("/healthz/live", "/nothing"):
            headers = self.http("GET", path).headers
            self.assertIn("default-src 'self'", headers["content-security-policy"])
            self.assertIn("frame-ancestors 'none'", headers["content-security-policy"])
            self.assertEqual("nosniff", headers["x-content-type-options"])
            self.assertEqual("no-store", headers["cache-control"])

    def test_negotiated(self) -> None:
        """With TLS, clients that know HTTP/2 learn that they are to speak HTTP/1.1."""
        self.assertEqual([b"http/1.1"], self.factory.acceptableProtocols())

    def test_console(self) -> None:
        """The files of the console are there for everybody, and are no part of the API."""
        pages = {route.path: route for route in self.factory.routes if route.page}
        self.assertEqual({"/", "/console/{file}"}, set(pages))
        for route in pages.values():
            self.assertEqual(("GET", True, (304,)), (route.method, route.open, route.also))
