"""What happened to a job, from the event log."""

from __future__ import annotations

import json
from typing import Any, Final

from disque_tx.protocols.http.api.slices import pause
from disque_tx.protocols.http.api.values import FLAG, NUMBER, ROOT, TEXT, array, schema
from disque_tx.protocols.http.exchange import Exchange
from disque_tx.protocols.http.problems import Problem
from disque_tx.protocols.http.routes import Route

#: Events of one job that are shown, the newest ones.
EVENTS_MAX: Final = 1_000
#: Lookups at the same time.
_LOOKUPS_MAX: Final = 2
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


class Lives:
    """Looks up the events of jobs, of few at a time."""

    def __init__(self) -> None:
        self._under_way = 0

    async def show(self, exchange: Exchange) -> dict[str, Any]:
        """The events of one job, oldest first. The log itself is not changed."""
        job_id = exchange.path["id"]
        lookup = exchange.host.lookup(job_id)
        if lookup is None:
            return {"log": False, "complete": False, "events": []}
        if self._under_way >= _LOOKUPS_MAX:
            raise Problem(503, "TRYLATER", "Other lookups in the event log are under way.")
        self._under_way += 1
        try:
            found: list[dict[str, Any]] = []
            for lines in lookup:
                found += [event for line in lines if (event := _event(line, job_id)) is not None]
                if len(found) >= EVENTS_MAX:
                    break
                await pause(exchange.host)
        finally:
            self._under_way -= 1
        found.sort(key=lambda event: str(event["time"]))
        complete = lookup.complete and len(found) < EVENTS_MAX
        return {"log": True, "complete": complete, "events": found[-EVENTS_MAX:]}


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
            "GET", f"{ROOT}/jobs/{{id}}/events", Lives().show, "What happened to a job, as far as"
            " the event log of this node has it; the newest 256 MiB are looked at",
            answer=schema(log=FLAG, complete=FLAG, events=array(event)), errors=(503,),
        ),
    ]  # fmt: skip
