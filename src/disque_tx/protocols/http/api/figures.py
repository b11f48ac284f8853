"""The figures of each node, side by side: for sums that say which nodes are in them."""

from __future__ import annotations

from typing import Any, Final

from disque_tx.protocols.http.api.base.nodeinfo import Fields, NodeInfos, number
from disque_tx.protocols.http.api.base.values import FLAG, NODES, NUMBER, ROOT, TEXT, array, schema
from disque_tx.protocols.http.server.asking import SCOPE, source
from disque_tx.protocols.http.server.exchange import Exchange
from disque_tx.protocols.http.server.routes import Route

#: Members of a row, and the fields of INFO that they come from.
_NUMBERS: Final = {
    "uptime_s": "uptime_in_seconds",
    "queued": "queued_jobs",
    "in_flight": "jobs_in_flight",
    "backoff": "jobs_in_backoff",
    "jobs": "registered_jobs",
    "queues": "registered_queues",
    "oldest_s": "oldest_queued_job_age_seconds",
    "clients": "connected_clients",
    "blocked": "blocked_clients",
    "memory_bytes": "used_memory",
    "maxmemory_bytes": "maxmemory",
    "log_bytes": "aof_current_size",
}
_TEXTS: Final = {"version": "disque_tx_version", "memory_level": "memory_level"}


def _row(fields: Fields) -> dict[str, Any]:
    values: dict[str, Any] = {name: number(fields, field) for name, field in _NUMBERS.items()}
    values |= {name: fields.get(field, "") for name, field in _TEXTS.items()}
    return {
        **values,
        "log": fields.get("aof_enabled") == "1",
        "log_ok": fields.get("aof_last_write_status", "ok") == "ok",
        "leaving": fields.get("leaving") == "yes",
        "consoles": [one for one in fields.get("listening_consoles", "").split(",") if one],
    }


def figure_routes(infos: NodeInfos) -> list[Route]:
    """The one operation. ``infos``: of the listener."""

    async def figures(exchange: Exchange) -> dict[str, Any]:
        asked = await infos.get(exchange)
        rows = [
            {**source(exchange, node), **_row(fields)} for node, fields in asked.answers.items()
        ]
        return {"rows": rows, **asked.sources()}

    row = schema(
        node=TEXT, process=NUMBER,
        **dict.fromkeys(_NUMBERS, NUMBER), **dict.fromkeys(_TEXTS, TEXT),
        log=FLAG, log_ok=FLAG, leaving=FLAG, consoles=array(TEXT),
    )  # fmt: skip
    return [
        Route(
            "GET", f"{ROOT}/figures", figures, "Jobs, clients, memory and log of each node, and"
            " where its console is",
            (SCOPE,), answer=schema(rows=array(row), **NODES),
        ),
    ]  # fmt: skip
