"""The node and its cluster: nodes, clients, slow log, latency, configuration, figures."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Final

from disque_tx.protocols.http.api.values import NUMBER, ROOT, TEXT, array, schema, text
from disque_tx.protocols.http.exchange import Exchange, Reply
from disque_tx.protocols.http.routes import Parameter, Route
from disque_tx.protocols.http.slices import Share
from disque_tx.protocols.http.streaming import listing

_CLIENTS_MAX: Final = 1_000
_CLIENTS_AT_ONCE: Final = 20
#: A client costs as much as looking at so many bytes.
_CLIENT_BYTES: Final = 1_024
_SECRETS: Final = frozenset((b"requirepass", b"readonly-password", b"workqueue-redis"))
#: Fields of a line of CLUSTER NODES, in order (client protocol, section 12).
_NODE_FIELDS: Final = ("id", "address", "flags", "ping_sent", "pong_received", "link")
_SLOW: Final = schema(
    id=NUMBER, at_s=NUMBER, duration_us=NUMBER, words=array(TEXT), addr=TEXT, client=TEXT
)
_OBJECT: Final[dict[str, Any]] = {"type": "object"}


async def nodes(exchange: Exchange) -> dict[str, Any]:
    """CLUSTER NODES, and by which others a node is not reached."""
    listing = text(await exchange.call(b"CLUSTER", b"NODES"))
    reports = exchange.host.view.failure_reports()
    found: list[dict[str, Any]] = []
    for line in listing.splitlines():
        values: dict[str, Any] = dict(zip(_NODE_FIELDS, line.split(" "), strict=False))
        values["flags"] = values.get("flags", "").split(",")
        values["unreached_by"] = reports.get(values["id"], [])
        found.append(values)
    return {"nodes": found}


async def clients(exchange: Exchange) -> Reply:
    """CLIENT LIST; workers are clients whose names say so."""
    limit, offset = exchange.number("limit"), exchange.number("offset")
    totals: dict[str, Any] = {"total": exchange.host.view.clients(0, 0)[1]}
    return Reply(listing("clients", _clients(exchange, offset, limit), totals))


async def _clients(exchange: Exchange, offset: int, limit: int) -> AsyncIterator[dict[str, Any]]:
    """A page of clients, some at a time."""
    share = Share(exchange.slices)
    for first in range(offset, offset + limit, _CLIENTS_AT_ONCE):
        count = min(_CLIENTS_AT_ONCE, offset + limit - first)
        await share.spend(count * _CLIENT_BYTES)
        lines, _total = exchange.host.view.clients(first, count)
        for line in lines:
            pairs = text(line.rstrip(b"\n")).split(" ")
            yield dict(pair.partition("=")[::2] for pair in pairs if "=" in pair)
        if len(lines) < count:
            return


async def slowlog(exchange: Exchange) -> dict[str, Any]:
    """SLOWLOG GET; passwords in it are hidden by the node."""
    rows = await exchange.call(b"SLOWLOG", b"GET", b"%d" % exchange.number("limit"))
    return {
        "entries": [
            {
                "id": row[0],
                "at_s": row[1],
                "duration_us": row[2],
                "words": [text(w) for w in row[3]],
                "addr": text(row[4]) if len(row) > 4 else "",
                "client": text(row[5]) if len(row) > 4 else "",
            }
            for row in rows
        ]
    }


async def latency(exchange: Exchange) -> dict[str, Any]:
    """LATENCY LATEST."""
    rows = await exchange.call(b"LATENCY", b"LATEST")
    return {
        "events": [
            {"event": text(row[0]), "at_s": row[1], "latest_ms": row[2], "worst_ms": row[3]}
            for row in rows
        ]
    }


async def config(exchange: Exchange) -> dict[str, Any]:
    """CONFIG GET; of secrets only whether they are set."""
    shown = {}
    for name, value in (await exchange.call(b"CONFIG", b"GET", b"*")).items():
        secret = name in _SECRETS and value
        shown[text(name)] = "(set)" if secret else text(value)
    return {"settings": shown}


def info(exchange: Exchange) -> dict[str, Any]:
    """INFO ALL."""
    return {"fields": exchange.host.view.info()}


def node_routes() -> list[Route]:
    """All operations on the node."""
    page = (
        Parameter("limit", "At most so many", "integer", 100, 1, _CLIENTS_MAX),
        Parameter("offset", "Leave out so many", "integer", 0, 0, 1_000_000),
    )
    return [
        Route(
            "GET", f"{ROOT}/nodes", nodes, "The nodes that this one knows, its links to them, and"
            " which others have reported lately that they do not reach them",
            answer=schema(nodes=array(_OBJECT)),
        ),
        Route(
            "GET", f"{ROOT}/clients", clients, "The clients of this node, workers among them", page,
            answer=schema(total=NUMBER, clients=array(_OBJECT)),
        ),
        Route(
            "GET", f"{ROOT}/slowlog", slowlog, "Commands that took long", page[:1],
            answer=schema(entries=array(_SLOW)),
        ),
        Route(
            "GET", f"{ROOT}/latency", latency, "Events that took long",
            answer=schema(events=array(_OBJECT)),
        ),
        Route(
            "GET", f"{ROOT}/config", config, "The configuration, without secrets",
            answer=schema(settings=_OBJECT),
        ),
        Route("GET", f"{ROOT}/info", info, "The fields of INFO ALL", answer=schema(fields=_OBJECT)),
    ]  # fmt: skip
