"""Figures of the node over the last quarter of an hour, as far as somebody looked."""

from __future__ import annotations

from collections import deque
from typing import Any, Final

from disque_tx.protocols.http.api.values import NUMBER, ROOT, array, schema
from disque_tx.protocols.http.exchange import Exchange
from disque_tx.protocols.http.routes import Parameter, Route
from disque_tx.services.interfaces import IHost

STEP_S: Final = 5
WINDOW_S: Final = 15 * 60
#: Members of a sample, and the fields of INFO that they come from.
_FIELDS: Final = {
    "added": "total_jobs_added",
    "delivered": "total_jobs_delivered",
    "acked": "total_jobs_acked",
    "queued": "queued_jobs",
    "in_hand": "jobs_in_hand",
    "oldest_s": "oldest_queued_job_age_seconds",
    "clients": "connected_clients",
    "blocked": "blocked_clients",
    "memory_bytes": "used_memory",
    "log_bytes": "aof_current_size",
    "commands": "total_commands_processed",
}
_TIME: Final = "at_ms"


class History:
    """Samples of one node. They are taken when somebody asks for them, at most one per step: a node
    that nobody looks at does no work. Counters give the right mean over a gap."""

    def __init__(self, host: IHost) -> None:
        self._host = host
        self._samples: deque[dict[str, int]] = deque(maxlen=WINDOW_S // STEP_S + 1)

    def _sample(self) -> dict[str, int]:
        info = self._host.view.info()
        figures = {name: int(info.get(field, 0)) for name, field in _FIELDS.items()}
        return {_TIME: round(self._host.reactor.seconds() * 1000), **figures}

    def show(self, exchange: Exchange) -> dict[str, Any]:
        """The samples of the last seconds, oldest first, and one of this moment."""
        now = self._sample()
        first_ms = now[_TIME] - exchange.number("seconds") * 1000
        kept = self._samples
        shown = [sample for sample in kept if first_ms <= sample[_TIME] < now[_TIME]]
        if not kept or now[_TIME] - kept[-1][_TIME] >= STEP_S * 1000:
            kept.append(now)
        shown.append(now)
        columns = {name: [sample[name] for sample in shown] for name in now}
        return {"step_s": STEP_S, "samples": columns}


def history_routes(host: IHost) -> list[Route]:
    """The samples."""
    history = History(host)
    columns = schema(**{name: array(NUMBER) for name in (_TIME, *_FIELDS)})
    return [
        Route(
            "GET", f"{ROOT}/history", history.show, "Figures of the node over time; counters since"
            " its start, and levels",
            (Parameter("seconds", "So far back", "integer", WINDOW_S, 1, WINDOW_S),),
            answer=schema(step_s=NUMBER, samples=columns),
        ),
    ]  # fmt: skip
