"""Health for load balancers and orchestrators. Without a password, so it answers nothing else."""

from __future__ import annotations

from disque_tx.plugins import Health
from disque_tx.protocols.http.server.exchange import Exchange, Reply
from disque_tx.protocols.http.server.routes import Route

_ANSWER = {
    "type": "object",
    "required": ["status", "reasons"],
    "properties": {
        "status": {"type": "string", "enum": ["ok", "unavailable"]},
        "reasons": {"type": "array", "items": {"type": "string"}},
    },
}


def reasons_not_ready(health: Health) -> list[str]:
    """Why clients should use another node; the path of a log or an error of the disk is not
    named."""
    found = [
        (not health.started, "the start is not complete"),
        (health.loading, "the log is being loaded"),
        (health.leaving, "the node is leaving the cluster"),
        (health.memory_full, "95 % of maxmemory is used"),
        (bool(health.write_error), "the log cannot be written"),
    ]
    return [reason for is_so, reason in found if is_so]


def _answer(reasons: list[str]) -> Reply:
    status = "unavailable" if reasons else "ok"
    return Reply({"status": status, "reasons": reasons}, 503 if reasons else 200)


def live(exchange: Exchange) -> Reply:
    """The process answers."""
    return _answer([])


def ready(exchange: Exchange) -> Reply:
    """Clients can be served."""
    return _answer(reasons_not_ready(exchange.host.view.health()))


def startup(exchange: Exchange) -> Reply:
    """The start is complete."""
    health = exchange.host.view.health()
    done = health.started and not health.loading
    return _answer([] if done else ["the start is not complete"])


def health_routes() -> list[Route]:
    """The three questions of orchestrators."""
    rows = [
        ("live", live, "Whether the process answers", ()),
        ("ready", ready, "Whether the node can serve clients, and why not", (503,)),
        ("startup", startup, "Whether the start is complete", (503,)),
    ]
    return [
        Route("GET", f"/healthz/{name}", handler, summary, answer=_ANSWER, errors=errors, open=True)
        for name, handler, summary, errors in rows
    ]
