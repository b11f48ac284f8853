"""The description of the API, compared with what is answered."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from disque_tx.protocols.http.api.openapi import statuses
from disque_tx.protocols.http.server.routes import Route
from tests.protocols.http.api.queues.test_queues import SlicedCase
from tests.protocols.http.api.test_workers import announced, said
from tests.protocols.http.httpbench import Answer, parsed, request

_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,), "integer": (int,), "number": (int, float), "boolean": (bool,),
    "array": (list,), "object": (dict,), "null": (type(None),),
}  # fmt: skip


def deviations(value: Any, schema: dict[str, Any], place: str = "") -> Iterator[str]:
    """Where a value is not as its schema says; members must be named in it."""
    kinds = schema.get("type")
    if kinds is None:
        return
    names = [kinds] if isinstance(kinds, str) else kinds
    if not any(isinstance(value, _TYPES[name]) for name in names):
        yield f"{place} is {value!r}, not {names}"
    if isinstance(value, dict) and "properties" in schema:
        for name, member in value.items():
            if name not in schema["properties"]:
                yield f"{place}.{name} is not described"
            else:
                yield from deviations(member, schema["properties"][name], f"{place}.{name}")
    if isinstance(value, list):
        for item in value:
            yield from deviations(item, schema.get("items", {}), f"{place}[]")


class DescriptionTests(SlicedCase):
    """Programs are generated from the description, so it must be true."""

    def setUp(self) -> None:
        super().setUp()
        answer = self.http("GET", "/api/v1/openapi.json")
        self.document = answer.json
        self.routes = [route for route in self.factory.routes if not route.page]

    def test_numbers(self) -> None:
        """The bounds of parameters are numbers, however large: generators of clients read them."""
        for operations in self.document["paths"].values():
            for operation in operations.values():
                for parameter in operation["parameters"]:
                    for name in ("minimum", "maximum"):
                        self.assertIsInstance(parameter["schema"].get(name, 0), int, parameter)

    def path_of(self, route: Route) -> str:
        """A path of this route, with a job and a queue that exist."""
        if "/workers/{id}" in route.path:
            announced(self.root, said(id="1"))
            return route.path.replace("{id}", "1")
        if "{id}" in route.path:
            job_id = self.http("POST", "/api/v1/queues/q/jobs", {"body": "x"}).json["url"]
            return route.path.replace("/api/v1/jobs/{id}", job_id)
        path = route.path.replace("{queue}", "q").replace("{pattern}", "q*")
        needed = [one.name for one in route.parameters if one.required]
        query = "?" + "&".join(f"{name}=x" for name in needed) if needed else ""
        return path.replace("{name}", "nightly") + query

    def body(self, route: Route) -> Any:
        """A body that this route accepts."""
        if route.body is None:
            return None
        members = route.body["properties"]
        if "pause" in members:
            return {"pause": "none"}
        if "cron" in members:
            return {"cron": "0 3 * * *", "queue": "q", "body": "x"}
        if "settings" in members:
            return {"settings": {"ttl": 60}}
        if "text" in members:
            return {"text": "deployed 4711"}
        if "command" in members:
            return {"command": "stop"}
        if "progress" in members:
            return {"progress": 0.5, "note": "half"}
        if "password" in members:
            return {"password": "x"}
        if "to" in members:
            return {"to": "elsewhere"}
        if "states" in members:
            return {"queue": "q"}
        if "reason" in members and "{id}" in route.path:
            return {}
        if "all" in members:
            return {"all": True}
        if "ids" in members:
            return {"ids": [self.http("POST", "/api/v1/queues/q/jobs", {"body": "x"}).json["id"]]}
        return {"body": "x"}

    def described(self, route: Route, answer: Answer) -> dict[str, Any]:
        """The schema of this answer."""
        operation = self.document["paths"][route.path][route.method.lower()]
        response = operation["responses"][str(answer.status)]
        kind = answer.headers["content-type"].partition(";")[0]
        self.assertIn(kind, response["content"], route.path)
        schema: dict[str, Any] = response["content"][kind]["schema"]
        return schema

    def test_complete(self) -> None:
        """Every path is described, with a summary and its parameters."""
        self.assertEqual("3.1.0", self.document["openapi"])
        self.assertEqual({route.path for route in self.routes}, set(self.document["paths"]))
        for methods in self.document["paths"].values():
            for operation in methods.values():
                self.assertTrue(operation["summary"])

    def test_answers(self) -> None:
        """Every path answers what is described."""
        self.call(b"ADDJOB", b"q", b"x", b"0")
        order = ("PUT", "POST", "GET", "DELETE")
        for route in sorted(self.routes, key=lambda route: order.index(route.method)):
            if route.content_type != "application/json":
                continue  # streams and texts have tests of their own
            waits = any(parameter.name == "wait_ms" for parameter in route.parameters)
            path = self.path_of(route) + ("?wait_ms=1" if waits else "")
            answer = self.slow(route.method, path, self.body(route))
            self.assertEqual(route.status, answer.status, (route.path, answer.body))
            found = list(deviations(answer.json, self.described(route, answer)))
            self.assertEqual([], found, route.path)

    def test_errors(self) -> None:
        """Every path refuses what it must, in the way that is described."""
        for route in self.routes:
            path, body = self.path_of(route), self.body(route)
            cases = [
                (400, route.method, f"{path}{'&' if '?' in path else '?'}nonsense=1", {}),
                (405, "PATCH", path, {}),
                (415, route.method, path, {"Content_Encoding": "gzip"}),
            ]
            if not path.startswith("/healthz/"):
                cases.append((421, route.method, path, {"Host": "evil.example"}))
            if not route.public:
                cases.append((403, route.method, path, {"Origin": "http://evil.example"}))
            for status, method, target, headers in cases:
                answer = self.http(method, target, body, **headers)
                self.assertEqual(status, answer.status, (route.path, method))
                self.assertIn(status, statuses(route))
                if method == route.method:
                    self.described(route, answer)

    def test_refused_jobs(self) -> None:
        """Every path that adds a job says how a node refuses it that is paused, full or leaving."""
        self.http("PUT", "/api/v1/schedules/nightly", {"every_s": 60, "queue": "q", "body": "x"})
        self.call(b"ADDJOB", b"from", b"x", b"0")
        adding = [
            ("/api/v1/queues/{queue}/jobs", "/api/v1/queues/q/jobs", {"body": "x"}),
            ("/api/v1/queues/{queue}/move", "/api/v1/queues/from/move", {"to": "q"}),
            ("/api/v1/schedules/{name}/run", "/api/v1/schedules/nightly/run", None),
        ]
        for words, status in (
            ((b"PAUSE", b"q", b"in"), 409),
            ((b"CONFIG", b"SET", b"maxmemory", b"1"), 507),
            ((b"CLUSTER", b"LEAVING", b"yes"), 503),
        ):
            self.call(*words)
            for pattern, path, body in adding:
                route = next(one for one in self.routes if one.path == pattern)
                answer = self.slow("POST", path, body)
                self.assertEqual(status, answer.status, (path, answer.body))
                self.described(route, answer)
            self.call(b"PAUSE", b"q", b"none")
            self.call(b"CONFIG", b"SET", b"maxmemory", b"0")

    def test_not_ready(self) -> None:
        """A node that is not ready answers no problem, but its reasons, and that is described."""
        self.call(b"CLUSTER", b"LEAVING", b"yes")
        route = next(one for one in self.routes if one.path == "/healthz/ready")
        answer = self.http("GET", route.path)
        self.assertEqual(503, answer.status)
        self.assertEqual([], list(deviations(answer.json, self.described(route, answer))))

    def test_fault(self) -> None:
        """A fault in the node is answered, described for every path, and explained in the log
        alone."""

        def fail(exchange: object) -> None:
            raise ZeroDivisionError("by nothing")

        self.factory.routes.add(Route("GET", "/api/v1/fault", fail, "A fault"))
        answer = self.http("GET", "/api/v1/fault")
        self.problem(500, "FAULT", answer)
        self.assertNotIn(b"ZeroDivision", answer.body)
        log = (self.folder / "log").read_text()
        self.assertIn("ZeroDivisionError: by nothing\n", log)
        self.assertIn("Please report what follows.\n", log)
        for route in self.routes:
            self.described(route, answer)

    def test_passwords(self) -> None:
        """Every path but those of the health asks for the password."""
        paths = [(route, self.path_of(route)) for route in self.routes]
        self.settings.requirepass, self.settings.readonly_password = b"secret", b"look"
        for route, path in paths:
            if route.open:
                continue
            answer = self.http(route.method, path)
            self.problem(401, "NOAUTH", answer)
            self.described(route, answer)
            if route.changes:
                answer = self.http(route.method, path, Authorization="Bearer look")
                self.problem(403, "NOPERM", answer)

    def test_guesses(self) -> None:
        """Wrong passwords are refused, and after some of them every password is."""
        paths = [(route, self.path_of(route)) for route in self.routes if not route.open]
        self.settings.requirepass = b"secret"
        for route, path in paths:
            answer = self.http(route.method, path, Authorization="Bearer guess")
            self.assertIn(answer.status, (401, 429))
            self.described(route, answer)
        for path in ("/api/v1/session", "/api/v1/info"):
            answer = self.http("GET", path, Authorization="Bearer secret")
            self.problem(429, "TRYLATER", answer)
            self.described(next(one for one in self.routes if one.path == path), answer)

    def test_large(self) -> None:
        """Every path refuses a body that is too large."""
        for route in self.routes:
            channel, transport = self.connect()
            channel.dataReceived(request(route.method, route.path, Content_Length="999999999"))
            answer, _rest = parsed(transport.value())
            self.problem(413, "SIZE", answer)
            self.described(route, answer)
            self.hang_up(channel)
