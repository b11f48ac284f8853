"""What happened to a job, from the event log."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from typing import Any, Final

from disque_tx.protocols.http.api.base.values import FLAG, NUMBER, ROOT, TEXT, array, schema
from disque_tx.protocols.http.server.exchange import Exchange, Reply
from disque_tx.protocols.http.server.problems import Problem
from disque_tx.protocols.http.server.routes import Route
from disque_tx.protocols.http.server.streaming import listing

#: Events of one job that are shown, the newest ones.
EVENTS_MAX: Final = 1_000
#: An ID of a job. Anything shorter could be found in every line of the log.
_JOB_ID: Final = re.compile(rb"D-[0-9a-f]{8}-[A-Za-z0-9+/]{24}-[0-9a-f]{4}")
_TYPE: Final = "disque.job."
#: Members of an event, and the names of their values in the log; those that are there are shown.
_MEMBERS: Final = {
    "node": "source",
    "client": "messaging.client.id",
    "wait_ms": "wait_ms",
    "run_ms": "run_ms",
    "backoff_ms": "backoff_ms",
    "reason": "reason",
    "note": "note",
    "successor": "successor",
}


async def show(exchange: Exchange) -> dict[str, Any] | Reply:
    """The events of one job, oldest first. The log itself is not changed."""
    job_id = exchange.path["id"]
    if not _JOB_ID.fullmatch(job_id):
        raise Problem(400, "BADID", "Invalid Job ID format.")
    lookup = exchange.host.lookup(job_id)
    if lookup is None:
        return {"log": False, "complete": False, "events": []}
    found: list[dict[str, Any]] = []
    more = False
    files = 0
    for lines in lookup:
        if lookup.files > files and len(found) >= EVENTS_MAX:
            more = True  # only at the end of a file: its newest lines come last
            break
        files = lookup.files
        found += [event for line in lines if (event := _event(line, job_id)) is not None]
        if len(found) >= 2 * EVENTS_MAX:
            _keep_newest(found)
            more = True
        await exchange.slices.turn()
    more |= _keep_newest(found)
    after = {"log": True, "complete": lookup.complete and not more}
    return Reply(listing("events", _each(found), after))


def _keep_newest(events: list[dict[str, Any]]) -> bool:
    """Sort them by time, and drop the oldest above the limit; whether there were such."""
    events.sort(key=lambda event: str(event["time"]))
    over = max(0, len(events) - EVENTS_MAX)
    del events[:over]
    return over > 0


async def _each(events: list[dict[str, Any]]) -> AsyncIterator[dict[str, Any]]:
    for event in events:
        yield event


def _event(line: bytes, job_id: bytes) -> dict[str, Any] | None:
    """A line of the log, if it is about this job."""
    try:
        values = json.loads(line)
    except ValueError:
        return None
    if values.get("subject") != job_id.decode("latin-1"):
        return None
    event = {"time": values["time"], "kind": values["type"].removeprefix(_TYPE)}
    return event | {name: values[key] for name, key in _MEMBERS.items() if key in values}


def life_routes() -> list[Route]:
    """The lookup."""
    event = schema(
        time=TEXT, kind=TEXT, node=TEXT, client=TEXT, wait_ms=NUMBER, run_ms=NUMBER,
        backoff_ms=NUMBER, reason=TEXT, note=TEXT, successor=TEXT,
    )  # fmt: skip
    event["required"] = ["time", "kind"]
    return [
        Route(
            "GET", f"{ROOT}/jobs/{{id}}/events", show, "What happened to a job, as far as"
            " the event log of this daemon has it; the newest 256 MiB are looked at",
            answer=schema(log=FLAG, complete=FLAG, events=array(event)), costly=True,
        ),
    ]  # fmt: skip
