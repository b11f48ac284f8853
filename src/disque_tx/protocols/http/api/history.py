"""Figures of the daemon, and of the cluster, over the last quarter of an hour, as far as somebody
looked."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

import attrs

from disque_tx.plugins import Durations, IHost
from disque_tx.protocols.http.api.base.nodeinfo import NodeInfos
from disque_tx.protocols.http.api.base.values import NODES, NUMBER, REAL, ROOT, array, schema
from disque_tx.protocols.http.metrics.sums import of_daemon
from disque_tx.protocols.http.server.asking import CLUSTER, PROCESSES, SCOPE, scope_of
from disque_tx.protocols.http.server.exchange import Exchange, Parameter
from disque_tx.protocols.http.server.routes import Route

STEP_S: Final = 5
WINDOW_S: Final = 15 * 60
#: Members of a sample, and the fields of INFO that they come from.
_FIELDS: Final = {
    "added": "total_jobs_added",
    "delivered": "total_jobs_delivered",
    "acked": "total_jobs_acked",
    "queued": "queued_jobs",
    "in_flight": "jobs_in_flight",
    "oldest_s": "oldest_queued_job_age_seconds",
    "clients": "connected_clients",
    "blocked": "blocked_clients",
    "memory_bytes": "used_memory",
    "log_bytes": "aof_current_size",
    "commands": "total_commands_processed",
}
_COUNTERS: Final = frozenset(("added", "delivered", "acked", "commands"))
#: The level of which the greatest is meant.
_OLDEST: Final = "oldest_s"
_TIME: Final = "at_ms"
#: Members of a sample, and the share of the jobs delivered since the sample before that waited at
#: most so long.
_WAITS: Final = {"wait_p50_s": 0.5, "wait_p95_s": 0.95, "wait_p99_s": 0.99}


@attrs.frozen
class Sample:
    """What is remembered of a moment. ``figures``: by member. ``waits``: of all jobs so far."""

    figures: dict[str, int]
    waits: Durations


def quantile(bounds_s: Sequence[float], counts: Sequence[int], share: float) -> float:
    """The duration that this share of those counted does not exceed, in seconds: within the
    bounds of its bucket in proportion, the last bound at most, and 0 if nothing is counted."""
    rank = share * sum(counts)
    if rank == 0:
        return 0.0
    lower_s, below = 0.0, 0
    for bound_s, count in zip(bounds_s, counts, strict=False):
        if below + count >= rank:
            return round(lower_s + (bound_s - lower_s) * (rank - below) / count, 6)
        lower_s, below = bound_s, below + count
    return lower_s


class Running:
    """Sums over nodes that come and go. A counter goes on from where it was: by what each node has
    counted since it was asked before. Levels are those of the nodes that answer now."""

    def __init__(self) -> None:
        self._before: dict[bytes, dict[str, int]] = {}
        self._sums: dict[str, int] = {}

    def sums(self, nodes: dict[bytes, dict[str, int]]) -> dict[str, int]:
        """Take in what the nodes say now. A node that counts from zero again was restarted; what
        one had counted before it was first asked is a part of no rate."""
        for name in _COUNTERS:
            total = self._sums.get(name)
            if total is None:
                total = sum(of[name] for of in nodes.values())
            else:
                for node, of in nodes.items():
                    before = self._before.get(node, of)[name]
                    total += of[name] - before if of[name] >= before else of[name]
            self._sums[name] = total
        self._before |= nodes
        levels = {
            name: sum(of[name] for of in nodes.values()) for name in _FIELDS.keys() - _COUNTERS
        }
        levels[_OLDEST] = max((of[_OLDEST] for of in nodes.values()), default=0)
        return {**self._sums, **levels}


class History:
    """Samples of the daemon, and of the cluster. A sample is taken when somebody asks for one, at
    most one per step is kept: a node that nobody looks at does no work. Counters give the right
    mean over a gap."""

    def __init__(self, host: IHost, infos: NodeInfos) -> None:
        self._host = host
        self._infos = infos
        self._samples: dict[bytes, deque[Sample]] = {}
        self._running = Running()

    async def _of_daemon(self) -> tuple[dict[str, int], Durations]:
        """Figures and waits, summed over the processes of the daemon."""
        processes = self._host.processes
        if processes is None:
            info, waits = self._host.view.info(), self._host.view.durations()[0]
        else:
            total = of_daemon(await processes.gather())
            info, waits = total["info"], Durations(**total["wait"])
        return _figures(info), waits

    async def _sample(self, exchange: Exchange, scope: bytes) -> tuple[Sample, dict[str, Any]]:
        """Of this moment, and which nodes are in it. The waits are those of this daemon."""
        figures, waits = await self._of_daemon()
        sources: dict[str, Any] = {"nodes": 1, "nodes_missing": []}
        if scope == CLUSTER:
            asked = await self._infos.get(exchange)
            sources = asked.sources()
            figures = self._running.sums(
                {node: _figures(fields) for node, fields in asked.answers.items()}
            )
        figures[_TIME] = round(self._host.reactor.seconds() * 1000)
        return Sample(figures, waits), sources

    async def show(self, exchange: Exchange) -> dict[str, Any]:
        """The samples of the last seconds, oldest first, and one of this moment."""
        scope = CLUSTER if scope_of(exchange) == CLUSTER else PROCESSES
        now, sources = await self._sample(exchange, scope)
        now_ms = now.figures[_TIME]
        first_ms = now_ms - exchange.number("seconds") * 1000
        kept = self._samples.setdefault(scope, deque(maxlen=WINDOW_S // STEP_S + 1))
        shown = [sample for sample in kept if first_ms <= sample.figures[_TIME] < now_ms]
        if not kept or now_ms - kept[-1].figures[_TIME] >= STEP_S * 1000:
            kept.append(now)
        shown.append(now)
        columns: dict[str, list[Any]] = {
            name: [sample.figures[name] for sample in shown] for name in (_TIME, *_FIELDS)
        }
        for name, share in _WAITS.items():
            columns[name] = [
                _wait_s(before, after, share) for before, after in pairwise([shown[0], *shown])
            ]
        return {"step_s": STEP_S, "samples": columns, **sources}


def _figures(info: Mapping[str, str]) -> dict[str, int]:
    return {name: int(float(info.get(field, 0))) for name, field in _FIELDS.items()}


def _wait_s(before: Sample, after: Sample, share: float) -> float:
    counts = [b - a for a, b in zip(before.waits.counts, after.waits.counts, strict=True)]
    return quantile(after.waits.bounds_s, counts, share)


def history_routes(host: IHost, infos: NodeInfos) -> list[Route]:
    """The samples. ``infos``: of the listener."""
    history = History(host, infos)
    columns = schema(
        **{name: array(NUMBER) for name in (_TIME, *_FIELDS)},
        **{name: array(REAL) for name in _WAITS},
    )
    return [
        Route(
            "GET", f"{ROOT}/history", history.show, "Figures over time: counters, levels, and the"
            " waits of jobs that this daemon delivered since the sample before",
            (Parameter("seconds", "So far back", "integer", WINDOW_S, 1, WINDOW_S), SCOPE),
            answer=schema(step_s=NUMBER, samples=columns, **NODES),
        ),
    ]  # fmt: skip
