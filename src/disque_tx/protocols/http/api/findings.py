"""What is wrong now, with the nodes and the queues that a request is about."""

from __future__ import annotations

from typing import Any, Final

import attrs

from disque_tx.client.requests.replies import cluster_nodes
from disque_tx.client.values import ClusterNode
from disque_tx.diagnosis.answers import (
    QUARTER_S,
    WORKERS_MAX,
    hour_of,
    merged_failures,
    more_than_before,
    usual_waits,
    with_versions,
)
from disque_tx.diagnosis.facts import (
    LONGEST_MAX,
    FailureFacts,
    QueueFacts,
    Survey,
    SurveyedNode,
)
from disque_tx.diagnosis.findings import findings
from disque_tx.diagnosis.queues import letter_places
from disque_tx.protocols.http.api.base.kept import KeptAnswers
from disque_tx.protocols.http.api.base.nodeinfo import NodeInfos, number
from disque_tx.protocols.http.api.base.values import NODES, ROOT, TEXT, array, schema
from disque_tx.protocols.http.server.asking import CLUSTER, SCOPE, Asked, ask, scope_of
from disque_tx.protocols.http.server.exchange import Exchange
from disque_tx.protocols.http.server.routes import Route
from disque_tx.worker.base.status import worker_of

#: For how long findings are kept, so that ten consoles cost no more than one: with 5 s until the
#: next look and 7 s until a wait is noted, 15 s in all; and what policies name as queues for dead
#: letters.
_KEPT_S: Final = 3.0
_POLICIES_KEPT_S: Final = 60.0
#: A node that answered a heartbeat so lately, and is connected, is no silent one: nodes of earlier
#: versions, and the original, do not know the questions.
_HEARTBEAT_S: Final = 8.0
_UNWELL: Final = frozenset(("fail", "fail?"))
_SILENCE: Final = "no reply within a second"
_SETTING: Final = b"dead-queue"


class Surveys:
    """Finds out how the cluster is, for one listener."""

    def __init__(self, infos: NodeInfos) -> None:
        self._infos = infos
        self._kept: KeptAnswers[dict[str, Any]] = KeptAnswers(_KEPT_S)
        self._letters: tuple[float, frozenset[str]] | None = None

    async def show(self, exchange: Exchange) -> dict[str, Any]:
        """All findings, and which nodes were asked."""
        scope = scope_of(exchange)

        async def made() -> dict[str, Any]:
            survey, asked = await self._survey(exchange, scope, exchange.host.reactor.seconds())
            found = [attrs.asdict(finding) for finding in findings(survey)]
            return {"findings": found, **asked.sources()}

        return await self._kept.get(exchange, scope, made)

    async def _survey(self, exchange: Exchange, scope: bytes, now_s: float) -> tuple[Survey, Asked]:
        asked = await self._infos.get(exchange)
        tables = await ask(exchange, scope, b"NODES")
        seen = {
            node.decode(): {line.id: line for line in cluster_nodes(reply)}
            for node, reply in tables.answers.items()
        }
        places = _places(seen)
        views: dict[str, SurveyedNode] = {}
        for node, info in asked.answers.items():
            name = node.decode()
            if name in seen:
                clock_s = float(info.get("cluster_clock_ahead_seconds", "0"))
                place, most = places.get(name, name[:8]), number(info, "maxmemory")
                views[name] = SurveyedNode(place, name, seen[name], info, most, 0, clock_s)
        silent = {
            places.get(line.id, line.address): _SILENCE
            for line in cluster_nodes(await exchange.call(b"CLUSTER", b"NODES"))
            if scope == CLUSTER and line.id not in views and _is_silent(line, now_s)
        }
        queues = await _queues(exchange, scope)
        letters = await self._letter_queues(exchange, now_s)
        queues = await _with_growth(exchange, scope, queues, letters, now_s)
        failures = await _failures(exchange, scope)
        return Survey(views, silent, queues, letters, now_s, failures), asked

    async def _letter_queues(self, exchange: Exchange, now_s: float) -> frozenset[str]:
        kept = self._letters
        if kept is not None and now_s - kept[0] < _POLICIES_KEPT_S:
            return kept[1]
        rows = await exchange.call(b"QPOLICY", b"LIST")
        named = (settings.get(_SETTING, b"") for _pattern, settings in rows)
        found = frozenset(bytes(name).decode("utf-8", "surrogateescape") for name in named if name)
        self._letters = now_s, found
        return found


def _places(seen: dict[str, dict[str, ClusterNode]]) -> dict[str, str]:
    """The addresses of nodes by their IDs, as others reach them: a node itself may know its port
    only."""
    found: dict[str, str] = {}
    for table in seen.values():
        for line in table.values():
            host, _, port = line.address.rpartition(":")
            if host:
                found[line.id] = line.address
            else:
                found.setdefault(line.id, f"port {port}")
    return found


def _is_silent(node: ClusterNode, now_s: float) -> bool:
    if node.flags & {"myself", "handshake"}:
        return False
    late = now_s - node.pong_received_ms / 1000 > _HEARTBEAT_S
    return bool(node.flags & _UNWELL) or not node.connected or late


async def _queues(exchange: Exchange, scope: bytes) -> tuple[QueueFacts, ...]:
    """Return the queues whose first job has waited for longest."""
    words = [b"QLIST", b"SORT", b"oldest", b"COUNT", b"%d" % LONGEST_MAX]
    where = CLUSTER if scope == CLUSTER else b"PROCESSES"
    reply = await exchange.call(*words, where)
    names = [row[b"name"] for row in reply[b"queues"]]
    answers = (await ask(exchange, scope, b"USUAL", *names)).answers if names else {}
    usual = usual_waits(len(names), answers.values())
    return tuple(
        QueueFacts(
            row[b"name"].decode("utf-8", "surrogateescape"),
            row[b"queued"],
            row[b"oldest-ms"] / 1000,
            row[b"blocked-clients"],
            row[b"in-flight"],
            row[b"backoff"],
            float(row[b"out-per-s"]),
            exchange.host.view.pause(row[b"name"]),
            exchange.host.view.alert_wait_s(row[b"name"]),
            usual_s,
        )
        for row, usual_s in zip(reply[b"queues"], usual, strict=True)
    )


async def _with_growth(
    exchange: Exchange,
    scope: bytes,
    queues: tuple[QueueFacts, ...],
    letters: frozenset[str],
    now_s: float,
) -> tuple[QueueFacts, ...]:
    """The same, with the growth of the first queues for dead letters, if all nodes answer."""
    first, last = hour_of(now_s)
    found = list(queues)
    for place, queue in letter_places(queues, letters):
        name = queue.name.encode("utf-8", "surrogateescape")
        words = (b"HISTORY", b"%d" % QUARTER_S, b"%d" % first, b"%d" % last, name)
        asked = await ask(exchange, scope, *words)
        if not asked.missing:
            grown = more_than_before(queue.queued, first, asked.answers.values())
            found[place] = attrs.evolve(queue, grown=grown)
    return tuple(found)


async def _failures(exchange: Exchange, scope: bytes) -> tuple[FailureFacts, ...]:
    """Return the queues whose jobs fail."""
    asked = await ask(exchange, scope, b"TROUBLES", b"%d" % LONGEST_MAX)
    found = merged_failures((row for rows in asked.answers.values() for row in rows), worker_of)
    if not any(one.worker for one in found):
        return found
    workers = await ask(exchange, scope, b"WORKERS", b"0", b"%d" % WORKERS_MAX)
    return with_versions(found, (row for _, rows in workers.answers.values() for row in rows))


def finding_routes(infos: NodeInfos) -> list[Route]:
    """The one operation. ``infos``: of the listener."""
    surveys = Surveys(infos)
    finding = schema(
        severity=TEXT, node=TEXT, what=TEXT, advice=TEXT,
        since_s={"type": ["number", "null"]}, link=TEXT,
    )  # fmt: skip
    return [
        Route(
            "GET", f"{ROOT}/findings", surveys.show, "What is wrong now, in order of weight, and"
            " what to do",
            (SCOPE,), answer=schema(findings=array(finding), **NODES),
        ),
    ]  # fmt: skip
