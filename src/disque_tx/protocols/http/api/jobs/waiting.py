"""Waiting for the end of a job, at whichever node of the cluster it is."""

from __future__ import annotations

from typing import Any, Final

from twisted.internet.task import deferLater

from disque_tx.errors import CommandError
from disque_tx.protocols.http.api.base.holders import known_by
from disque_tx.protocols.http.api.base.values import ROOT, schema, text
from disque_tx.protocols.http.server.asking import CLUSTER, ask
from disque_tx.protocols.http.server.exchange import Exchange, Parameter
from disque_tx.protocols.http.server.problems import Problem
from disque_tx.protocols.http.server.routes import Route

TIMEOUT_MS_MAX: Final = 60_000
_WAIT_MS: Final = 10_000
_ENDINGS: Final = ("acked", "deleted", "expired", "dead")
#: After so many seconds another node is asked again.
_PAUSE_S: Final = 0.2


async def wait(exchange: Exchange) -> dict[str, Any]:
    """WAITJOB, here or by questions to a node that has the job."""
    job_id, wait_ms = exchange.path["id"], exchange.number("wait_ms")
    try:
        how = await exchange.call(b"WAITJOB", job_id, b"TIMEOUT", b"%d" % wait_ms)
    except CommandError as error:
        if error.code != "NOJOB":
            raise
        how = await _elsewhere(exchange, job_id, wait_ms / 1000, error)
    return {"ended": None if how is None else text(how.text).lower()}


async def _elsewhere(exchange: Exchange, job_id: bytes, wait_s: float, error: CommandError) -> Any:
    """The reply of a node that has the job, while this one has not; None when the time is over.
    Nodes that do not answer, because they are paused or started again, are waited for. Raises
    ``error`` if no node has it, and ``Problem`` if it may be at one that did not answer in time."""
    reactor = exchange.host.reactor
    end_s = reactor.seconds() + wait_s
    node = b""
    while True:
        if not node:
            (nodes,), asked = await known_by(exchange, CLUSTER, [job_id])
            if not nodes and not asked.missing:
                raise error
            node = nodes[0] if nodes else b""
        if node:
            answers = (await ask(exchange, node, b"ENDED", job_id)).answers
            if answers.get(node) is not None:
                return answers[node]
            if node not in answers:
                node = b""  # another one may have a copy
        left_s = end_s - reactor.seconds()
        if left_s <= 0 and not node:
            raise Problem(
                503, "TRYLATER",
                "No node that answers knows the job, but one does not answer at present.",
            )  # fmt: skip
        if left_s <= 0:
            return None
        await deferLater(reactor, min(_PAUSE_S, left_s), lambda: None)


def wait_routes() -> list[Route]:
    """The one request."""
    return [
        Route(
            "GET", f"{ROOT}/jobs/{{id}}/wait", wait,
            "Wait until the job has ended, at any node; null if it has not in time",
            (Parameter("wait_ms", "Wait so long", "integer", _WAIT_MS, 1, TIMEOUT_MS_MAX),),
            answer=schema(ended={"type": ["string", "null"], "enum": [*_ENDINGS, None]}),
            errors=(404, 503),
        ),
    ]  # fmt: skip
