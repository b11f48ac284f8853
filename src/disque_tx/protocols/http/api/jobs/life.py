"""What happened to a job, from the event logs."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from typing import Any, Final

from disque_tx.errors import CommandError
from disque_tx.protocols.http.api.base.values import FLAG, NODES, NUMBER, ROOT, TEXT, array, schema
from disque_tx.protocols.http.server.asking import SCOPE, Asked, ask, scope_of
from disque_tx.protocols.http.server.exchange import Exchange, Reply
from disque_tx.protocols.http.server.problems import Problem
from disque_tx.protocols.http.server.routes import Route
from disque_tx.protocols.http.server.streaming import listing

#: Events of one job that are shown, the newest ones.
EVENTS_MAX: Final = 1_000
#: Parts of one answer, together: far more than the logs of ten nodes have, and no node can make it
#: endless.
PARTS_MAX: Final = 10_000
#: An ID of a job. Anything shorter could be found in every line of the log.
_JOB_ID: Final = re.compile(rb"D-[0-9a-f]{8}-[A-Za-z0-9+/]{24}-[0-9a-f]{4}")


class _Life:
    """The events of one job, as the logs of several nodes have it."""

    def __init__(self) -> None:
        self.log = False
        self.complete = True
        self.events: list[dict[str, Any]] = []
        #: By node, where to go on.
        self.following: dict[bytes, bytes] = {}
        self._parts = 0

    def receive(self, asked: Asked) -> None:
        """One part of some nodes."""
        for node, (log, following, complete, events) in asked.answers.items():
            self.log |= bool(log)
            self.events += [json.loads(event) for event in events]
            self._parts += 1
            if following and self._parts < PARTS_MAX:
                self.following[node] = b"%d" % following
            elif not complete:
                self.complete = False
        if len(self.events) >= 2 * EVENTS_MAX:
            self.keep_newest()

    def keep_newest(self) -> None:
        """Sort them by time, and drop the oldest above the limit."""
        self.events.sort(key=lambda event: str(event["time"]))
        over = max(0, len(self.events) - EVENTS_MAX)
        del self.events[:over]
        if over:
            self.complete = False


async def show(exchange: Exchange) -> Reply:
    """The events of one job, oldest first. The logs are not changed."""
    scope = scope_of(exchange)
    job_id = exchange.path["id"]
    if not _JOB_ID.fullmatch(job_id):
        raise Problem(400, "BADID", "Invalid Job ID format.")
    life = _Life()
    asked = await ask(exchange, scope, b"EVENTS", job_id, b"0")
    life.receive(asked)
    while life.following:
        await exchange.slices.turn()  # this node's own parts are there at once
        node, number = life.following.popitem()
        try:
            more = await ask(exchange, node, b"EVENTS", job_id, number)
        except CommandError:  # the node was too slow, or has been started again
            more = Asked({}, [node])
        life.receive(more)
        asked.miss(more)
    life.keep_newest()
    complete = life.log and life.complete and not asked.missing
    after = {"log": life.log, "complete": complete, **asked.sources()}
    return Reply(listing("events", _each(life.events), after))


async def _each(events: list[dict[str, Any]]) -> AsyncIterator[dict[str, Any]]:
    for event in events:
        yield event


def life_routes() -> list[Route]:
    """The lookup."""
    event = schema(
        time=TEXT, kind=TEXT, node=TEXT, client=TEXT, wait_ms=NUMBER, run_ms=NUMBER,
        backoff_ms=NUMBER, reason=TEXT, note=TEXT, successor=TEXT,
    )  # fmt: skip
    event["required"] = ["time", "kind"]
    return [
        Route(
            "GET", f"{ROOT}/jobs/{{id}}/events", show, "What happened to a job, as far as the event"
            " logs have it; of each, the newest 256 MiB are looked at",
            (SCOPE,), answer=schema(log=FLAG, complete=FLAG, events=array(event), **NODES),
            costly=True,
        ),
    ]  # fmt: skip
