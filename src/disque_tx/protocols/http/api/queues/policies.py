"""Policies: the settings of queues by pattern, for the whole cluster."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Final

from disque_tx.protocols.http.api.base.values import (
    NUMBER,
    ROOT,
    TEXT,
    array,
    schema,
    take_number,
    take_text,
    text,
    url,
)
from disque_tx.protocols.http.server.exchange import LIST_BYTES, Exchange, Parameter, Reply
from disque_tx.protocols.http.server.problems import Problem, bad_request
from disque_tx.protocols.http.server.routes import IDS_BODY_BYTES, Route
from disque_tx.protocols.http.server.slices import Share
from disque_tx.protocols.http.server.streaming import listing

_SETTINGS_MAX: Final = 100
_PAGE_MAX: Final = 1_000
_OFFSET_MAX: Final = 100_000
#: What a policy costs, in bytes that are looked at.
POLICY_BYTES: Final = 4 * 1024
_POLICY: Final = schema(pattern=TEXT, url=TEXT, settings={"type": "object"})


def _policy(row: list[Any]) -> dict[str, Any]:
    pattern, settings = row
    return {
        "pattern": text(pattern),
        "url": url("policies", pattern),
        "settings": {text(name): text(value) for name, value in settings.items()},
    }


def list_policies(exchange: Exchange) -> Reply:
    """A page of the policies. Only those on it are looked at."""
    limit, offset = exchange.number("limit"), exchange.number("offset")
    patterns = exchange.host.view.policies()
    page = _page(exchange, patterns[offset : offset + limit])
    return Reply(listing("policies", page, {"total": len(patterns)}))


async def _page(exchange: Exchange, patterns: list[bytes]) -> AsyncIterator[dict[str, Any]]:
    share = Share(exchange.slices)
    for pattern in patterns:
        await share.spend(POLICY_BYTES)
        for row in await exchange.call(b"QPOLICY", b"LIST", pattern):
            yield _policy(row)


async def one_policy(exchange: Exchange) -> dict[str, Any]:
    """QPOLICY LIST of one pattern."""
    rows = await exchange.call(b"QPOLICY", b"LIST", exchange.path["pattern"])
    if not rows:
        raise Problem(404, "NOPOLICY", "There is no policy for this pattern.")
    return _policy(rows[0])


async def set_policy(exchange: Exchange) -> dict[str, Any]:
    """QPOLICY SET; other settings of the pattern stay."""
    settings = exchange.json().get("settings")
    if not isinstance(settings, dict) or not 0 < len(settings) <= _SETTINGS_MAX:
        raise bad_request(f"settings must be an object with 1 to {_SETTINGS_MAX} members.")
    words: list[bytes] = []
    for name, value in settings.items():
        words += [take_text("A setting", name), _value(name, value)]
    await exchange.call(b"QPOLICY", b"SET", exchange.path["pattern"], *words)
    return await one_policy(exchange)


def _value(name: str, value: object) -> bytes:
    if isinstance(value, bool):
        return b"yes" if value else b"no"
    if isinstance(value, str):
        return take_text(name, value)
    return take_number(name, value)


async def delete_policy(exchange: Exchange) -> dict[str, Any]:
    """QPOLICY DEL."""
    names = (exchange.word("settings") or "").split(",")
    words = [name.encode() for name in names if name]
    if exchange.word("settings") is not None and not words:
        raise bad_request("settings must be names with commas between them.")
    return {"count": await exchange.call(b"QPOLICY", b"DEL", exchange.path["pattern"], *words)}


async def in_force(exchange: Exchange) -> dict[str, Any]:
    """QPOLICY GET."""
    rows = await exchange.call(b"QPOLICY", b"GET", exchange.path["queue"])
    return {
        "settings": {
            text(name): {"value": text(value), "pattern": text(pattern)}
            for name, value, pattern in rows
        }
    }


def policy_routes() -> list[Route]:
    """All operations on policies."""
    policy = f"{ROOT}/policies/{{pattern}}"
    return [
        Route(
            "GET", f"{ROOT}/policies", list_policies, "The policies of the cluster",
            (
                Parameter("limit", "Policies at most", "integer", 100, 1, _PAGE_MAX),
                Parameter("offset", "Policies to leave out", "integer", 0, 0, _OFFSET_MAX),
            ),
            answer=schema(total=NUMBER, policies=array(_POLICY)),
        ),
        Route(
            "GET", policy, one_policy, "The settings of a pattern", answer=_POLICY, errors=(404,)
        ),
        Route(
            "POST", policy, set_policy, "Give a pattern settings, all or none",
            body=schema(settings={"type": "object"}), body_max=IDS_BODY_BYTES,
            answer=_POLICY, errors=(404,),
        ),
        Route(
            "DELETE", policy, delete_policy, "Take settings from a pattern",
            (
                Parameter(
                    "settings", "Some, with commas between them; all without it",
                    longest=LIST_BYTES,
                ),
            ),
            answer=schema(count=NUMBER),
        ),
        Route(
            "GET", f"{ROOT}/queues/{{queue}}/policy", in_force, "The settings in force for a queue",
            answer=schema(settings={"type": "object"}),
        ),
    ]  # fmt: skip
