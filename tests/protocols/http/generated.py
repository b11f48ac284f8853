"""Requests that are as large as the description of the API allows, for every route of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import attrs

#: A pattern that much is compared with, and text that is as long as a parameter may be.
_PATTERN = "*a"
#: An ID of a job that nobody has.
_JOB = "D-00000000-" + "0" * 24 + "-0000"
#: Answers that stay open.
ENDLESS = frozenset(("GET /api/v1/events", "GET /api/v1/nodes/events"))


@attrs.frozen
class Hostile:
    """``what``: method and path as described. ``data``: the request."""

    what: str
    data: bytes


def hostile_requests(document: dict[str, Any], queue: str) -> Iterator[Hostile]:
    """A request for each route of the description: the largest numbers, the longest text, and
    each of the words that a parameter takes. ``queue``: one that exists."""
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            for query in _queries(operation):
                target = _path(path, queue) + query
                body = _body(operation)
                head = f"{method.upper()} {target} HTTP/1.1\r\nHost: localhost\r\n"
                if body:
                    head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
                yield Hostile(f"{method.upper()} {path}", f"{head}\r\n".encode() + body)


def _path(path: str, queue: str) -> str:
    path = path.replace("{id}", quote(_JOB, safe="")).replace("{queue}", quote(queue, safe=""))
    return path.replace("{name}", "s0").replace("{pattern}", "%2A")


def _queries(operation: dict[str, Any]) -> Iterator[str]:
    """The query with all parameters, once for each word of those that take certain words."""
    largest: dict[str, str] = {}
    words: dict[str, list[str]] = {}
    for parameter in operation["parameters"]:
        if parameter["in"] != "query":
            continue
        name, schema = parameter["name"], parameter["schema"]
        if "enum" in schema:
            words[name] = schema["enum"]
        elif name in ("cursor", "offset", "wait_ms"):
            continue  # with them there is less to do
        elif schema["type"] == "integer":
            largest[name] = str(schema["maximum"])
        elif name in ("match", "queue"):
            largest[name] = (_PATTERN * schema["maxLength"])[: schema["maxLength"] - 1] + "b"
    yield _query(largest)
    yield _query({name: text for name, text in largest.items() if name not in ("match", "queue")})
    for name, choices in words.items():
        for word in choices:
            yield _query({name: word})


def _query(values: dict[str, str]) -> str:
    if "queue" in values:  # where this is a regular expression, a star follows a dot
        values = {**values, "queue": values["queue"].replace("*", ".*")[-256:].lstrip("*")}
    text = "&".join(f"{name}={quote(value)}" for name, value in values.items())
    return f"?{text}" if text else ""


def _body(operation: dict[str, Any]) -> bytes:
    if "requestBody" not in operation:
        return b""
    schema = operation["requestBody"]["content"]["application/json"]["schema"]
    members = schema.get("properties", {})
    return json.dumps({name: ["x" * 40] * 1_000 for name in members}).encode()
