"""The node and its cluster: nodes, clients, slow log, latency, configuration, figures."""

from __future__ import annotations

from typing import Any, Final

from disque_tx.protocols.http.api.base.newest import newest
from disque_tx.protocols.http.api.base.values import NODES, NUMBER, ROOT, TEXT, array, schema, text
from disque_tx.protocols.http.server.asking import SCOPE, ask, scope_of, source
from disque_tx.protocols.http.server.exchange import Exchange, Parameter
from disque_tx.protocols.http.server.routes import Route
from disque_tx.protocols.http.server.slices import Share

_CLIENTS_MAX: Final = 1_000
#: Clients of one question.
_ROWS: Final = 100
#: A client costs as much as examining so many bytes.
_CLIENT_BYTES: Final = 1_024
_SECRETS: Final = frozenset((b"requirepass", b"readonly-password", b"workqueue-redis"))
#: Fields of a line of CLUSTER NODES, in order (client protocol, section 12).
_NODE_FIELDS: Final = ("id", "address", "flags", "ping_sent", "pong_received", "link")
_SLOW: Final = schema(
    id=NUMBER,
    at_s=NUMBER,
    duration_us=NUMBER,
    words=array(TEXT),
    addr=TEXT,
    client=TEXT,
    node=TEXT,
    process=NUMBER,
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


async def clients(exchange: Exchange) -> dict[str, Any]:
    """CLIENT LIST, of one process after the other; workers are clients whose names say so."""
    left, offset = exchange.number("limit"), exchange.number("offset")
    asked = await ask(exchange, scope_of(exchange), b"CLIENTS", b"0", b"1")
    rows: list[dict[str, Any]] = []
    total, share = 0, Share(exchange.slices)
    for node, (count, _lines) in asked.answers.items():
        total += count
        first, offset = min(offset, count), max(0, offset - count)
        while left and first < count:
            some = min(left, _ROWS)
            answer = await ask(exchange, node, b"CLIENTS", b"%d" % first, b"%d" % some)
            asked.miss(answer)
            _count, lines = answer.answers.get(node, (0, []))
            rows += [{**_client(text(line)), **source(exchange, node)} for line in lines]
            await share.spend(len(lines) * _CLIENT_BYTES)
            if len(lines) < some:
                break
            first, left = first + some, left - some
        left = exchange.number("limit") - len(rows)
    return {"total": total, "clients": rows, **asked.sources()}


def _client(line: str) -> dict[str, str]:
    """A line of CLIENT LIST."""
    return dict(pair.partition("=")[::2] for pair in line.rstrip("\n").split(" ") if "=" in pair)


async def slowlog(exchange: Exchange) -> dict[str, Any]:
    """SLOWLOG GET, the newest of all; passwords in it are hidden by the node."""
    limit = exchange.number("limit")
    kept = await newest(exchange, b"SLOWLOG", limit)
    found = [{**_slow(row), **source(exchange, node)} for node, row in kept.each()]
    found.sort(key=lambda entry: -entry["at_s"])
    return {"entries": found[:limit], **kept.asked.sources()}


def _slow(row: list[Any]) -> dict[str, Any]:
    return {
        "id": row[0],
        "at_s": row[1],
        "duration_us": row[2],
        "words": [text(word) for word in row[3]],
        "addr": text(row[4]) if len(row) > 4 else "",
        "client": text(row[5]) if len(row) > 4 else "",
    }


async def latency(exchange: Exchange) -> dict[str, Any]:
    """LATENCY LATEST, of each process."""
    asked = await ask(exchange, scope_of(exchange), b"LATENCY")
    return {
        "events": [
            {
                "event": text(row[0]),
                "at_s": row[1],
                "latest_ms": row[2],
                "worst_ms": row[3],
                **source(exchange, node),
            }
            for node, rows in asked.answers.items()
            for row in rows
        ],
        **asked.sources(),
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
            "GET", f"{ROOT}/clients", clients, "The clients of the daemon, workers among them",
            (*page, SCOPE), answer=schema(total=NUMBER, clients=array(_OBJECT), **NODES),
        ),
        Route(
            "GET", f"{ROOT}/slowlog", slowlog, "Commands that took long", (page[0], SCOPE),
            answer=schema(entries=array(_SLOW), **NODES),
        ),
        Route(
            "GET", f"{ROOT}/latency", latency, "Events that took long", (SCOPE,),
            answer=schema(events=array(_OBJECT), **NODES),
        ),
        Route(
            "GET", f"{ROOT}/config", config, "The configuration, without secrets",
            answer=schema(settings=_OBJECT),
        ),
        Route("GET", f"{ROOT}/info", info, "The fields of INFO ALL", answer=schema(fields=_OBJECT)),
    ]  # fmt: skip
