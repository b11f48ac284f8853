"""The description of the API, OpenAPI 3.1, made from the table of routes."""

from __future__ import annotations

import json
from typing import Any, Final

from disque_tx import __version__
from disque_tx.plugins import QUEUE_BYTES_MAX
from disque_tx.protocols.http.api.base.values import ROOT
from disque_tx.protocols.http.server.exchange import Exchange, Parameter, Reply
from disque_tx.protocols.http.server.problems import CONTENT_TYPE
from disque_tx.protocols.http.server.routes import Route, Routes

#: Problems of every route, and those of routes that need a password.
_COMMON: Final = (400, 405, 408, 413, 415, 421, 500)
_GUARDED: Final = (401, 403, 429, 503)
_NAME: Final = {"type": "string", "maxLength": QUEUE_BYTES_MAX}
_PROBLEM: Final = {
    "type": "object",
    "required": ["type", "title", "status", "code", "detail"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "code": {"type": "string"},
        "detail": {"type": "string"},
    },
}


def description(routes: Routes) -> dict[str, Any]:
    """The document."""
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        if not route.page:
            paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Disque", "version": __version__},
        "paths": dict(sorted(paths.items())),
        "components": {
            "schemas": {"Problem": _PROBLEM},
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "basic": {"type": "http", "scheme": "basic"},
            },
        },
    }


def statuses(route: Route) -> set[int]:
    """Every status that a route may answer with."""
    guarded = () if route.open else _GUARDED
    return {route.status, *route.also, *_COMMON, *guarded, *route.errors}


def _operation(route: Route) -> dict[str, Any]:
    answers: dict[str, Any] = {}
    problem = {CONTENT_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    for status in sorted(statuses(route)):
        if status in (route.status, *route.also):
            content = {route.content_type: {"schema": route.answer or {}}}
            answers[str(status)] = {"description": route.summary, "content": content}
        else:
            answers[str(status)] = {"description": "A problem", "content": problem}
    if route.open and 503 in route.errors:
        content = {route.content_type: {"schema": route.answer or {}}}
        answers["503"] = {"description": "No, and why", "content": content}
    in_path = [
        {"name": name, "in": "path", "required": True, "schema": _NAME} for name in route.names
    ]
    operation: dict[str, Any] = {
        "summary": route.summary,
        "parameters": in_path + [_parameter(parameter) for parameter in route.parameters],
        "responses": answers,
    }
    if route.body is not None:
        operation["requestBody"] = {"content": {"application/json": {"schema": route.body}}}
    if not route.open:
        operation["security"] = [{"bearer": []}, {"basic": []}, {}]
    return operation


def _parameter(parameter: Parameter) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": parameter.kind}
    if parameter.kind == "integer":
        schema |= {"minimum": parameter.least, "maximum": parameter.most}
    else:
        schema["maxLength"] = parameter.longest
    if parameter.choices:
        schema["enum"] = list(parameter.choices)
    if parameter.default is not None:
        schema["default"] = parameter.default
    return {
        "name": parameter.name,
        "in": parameter.place,
        "required": parameter.required,
        "description": parameter.summary,
        "schema": schema,
    }


def openapi_routes(routes: Routes) -> list[Route]:
    """The description itself, which describes itself, too. The description is made once, at the
    first request: then all routes are there."""
    made: list[bytes] = []

    def describe(exchange: Exchange) -> Reply:
        if not made:
            made.append(json.dumps(description(routes), separators=(",", ":")).encode())
        return Reply(made[0])

    return [
        Route(
            "GET", f"{ROOT}/openapi.json", describe, "This description", answer={"type": "object"}
        )
    ]
