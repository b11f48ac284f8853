"""Schedules: jobs that the cluster adds by itself whenever they are due."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Final

from disque_tx.errors import CommandError
from disque_tx.protocols.http.api.base.bodies import SHOWN_BODY, Bodies
from disque_tx.protocols.http.api.base.values import (
    FLAG,
    NUMBER,
    ROOT,
    TEXT,
    array,
    put_bytes,
    schema,
    take_bytes,
    take_queue,
    take_text,
    text,
    url,
)
from disque_tx.protocols.http.api.jobs.adding import ADDED, JOB_MEMBERS, added_reply, option_words
from disque_tx.protocols.http.server.exchange import Exchange, Parameter, Reply, whole
from disque_tx.protocols.http.server.problems import bad_request
from disque_tx.protocols.http.server.routes import IDS_BODY_BYTES, Handler, Route
from disque_tx.protocols.http.server.slices import Share
from disque_tx.protocols.http.server.streaming import listing

_EVERY_S_MAX: Final = 31_622_400
_PAGE_MAX: Final = 1_000
_OFFSET_MAX: Final = 100_000
#: What a schedule costs, with its next occurrences, in bytes that are looked at.
SCHEDULE_BYTES: Final = 16 * 1024
_SCHEDULE: Final = schema(
    name=TEXT, url=TEXT, when=TEXT, zone=TEXT, missed=TEXT, paused=FLAG, queue=TEXT, **SHOWN_BODY,
    options=array(TEXT), last_s={"type": ["integer", "null"]}, next_s=array(NUMBER), node=TEXT,
    error=TEXT,
)  # fmt: skip


def _without_body(found: dict[bytes, Any]) -> dict[str, Any]:
    names = (b"when", b"zone", b"missed", b"queue", b"node", b"error")
    return {
        "name": text(found[b"name"]),
        "url": url("schedules", found[b"name"]),
        **{text(name): text(found[name]) for name in names},
        "paused": found[b"state"] == b"paused",
        "options": [text(word) for word in found[b"options"]],
        "last_s": found[b"last"] or None,
        "next_s": found[b"next"],
    }


def list_schedules(exchange: Exchange) -> Reply:
    """A page of the schedules. Only those on it are looked at: occurrences cost time."""
    limit, offset = exchange.number("limit"), exchange.number("offset")
    names = exchange.host.view.schedules()
    page = _page(exchange, names[offset : offset + limit])
    return Reply(listing("schedules", page, {"total": len(names)}))


async def _page(exchange: Exchange, names: list[bytes]) -> AsyncIterator[dict[str, Any]]:
    share, bodies = Share(exchange.slices), Bodies()
    for name in names:
        await share.spend(SCHEDULE_BYTES)
        try:
            found = await exchange.call(b"SCHEDULE", b"GET", name)
        except CommandError:
            continue  # it was deleted meanwhile
        body = found[b"body"]
        values = _without_body({**found, b"next": found[b"next"][:1]})
        bodies.put(values, body, len(body))
        yield values


async def one_schedule(exchange: Exchange) -> dict[str, Any]:
    """SCHEDULE GET."""
    found = await exchange.call(b"SCHEDULE", b"GET", exchange.path["name"])
    values = _without_body(found)
    put_bytes(values, "body", found[b"body"])
    return values


async def set_schedule(exchange: Exchange) -> dict[str, Any]:
    """SCHEDULE SET."""
    values = exchange.json()
    words = [*_when_words(values)]
    for name in ("tz", "missed"):
        if values.get(name) is not None:
            words += [name.upper().encode(), take_text(name, values[name])]
    words += [b"QUEUE", take_queue(values, "queue"), take_bytes(values, "body")]
    words += option_words(values)
    await exchange.call(b"SCHEDULE", b"SET", exchange.path["name"], *words)
    return await one_schedule(exchange)


def _when_words(values: dict[str, Any]) -> list[bytes]:
    cron, every = values.get("cron"), values.get("every_s")
    if (cron is None) == (every is None):
        raise bad_request("Give either cron or every_s.")
    if every is not None:
        return [b"EVERY", b"%d" % whole("every_s", every, 1, _EVERY_S_MAX)]
    words = take_text("cron", cron)
    if words.upper() == b"EVERY":
        raise bad_request("cron must be a cron expression; give every_s for equal intervals.")
    return [words]


def _changing(command: bytes) -> Handler:
    async def change(exchange: Exchange) -> dict[str, Any]:
        return {"changed": bool(await exchange.call(b"SCHEDULE", command, exchange.path["name"]))}

    return change


async def skip(exchange: Exchange) -> dict[str, Any]:
    """SCHEDULE SKIP."""
    return {"skipped_s": await exchange.call(b"SCHEDULE", b"SKIP", exchange.path["name"])}


async def run(exchange: Exchange) -> Reply:
    """SCHEDULE RUN."""
    return added_reply((await exchange.call(b"SCHEDULE", b"RUN", exchange.path["name"])).text)


def schedule_routes() -> list[Route]:
    """All operations on schedules."""
    schedule = f"{ROOT}/schedules/{{name}}"
    changed = schema(changed=FLAG)
    new = schema(
        cron=TEXT, every_s=NUMBER, tz=TEXT, missed={"enum": ["skip", "one", "all"]}, queue=TEXT,
        queue_base64=TEXT, **JOB_MEMBERS,
    )  # fmt: skip
    return [
        Route(
            "GET", f"{ROOT}/schedules", list_schedules,
            "The schedules of the cluster, each with its next occurrence",
            (
                Parameter("limit", "Schedules at most", "integer", 100, 1, _PAGE_MAX),
                Parameter("offset", "Schedules to leave out", "integer", 0, 0, _OFFSET_MAX),
            ),
            answer=schema(total=NUMBER, schedules=array(_SCHEDULE)),
        ),
        Route(
            "GET", schedule, one_schedule, "A schedule, with its next five occurrences",
            answer=_SCHEDULE, errors=(404,),
        ),
        Route(
            "PUT", schedule, set_schedule, "Add a job whenever it is due; replaces the schedule of"
            " that name", body=new, body_max=IDS_BODY_BYTES, answer=_SCHEDULE, errors=(404,),
        ),
        Route(
            "DELETE", schedule, _changing(b"DEL"), "Delete a schedule; jobs that it added stay",
            answer=changed,
        ),
        Route(
            "POST", f"{schedule}/pause", _changing(b"PAUSE"), "Add no jobs until it is resumed",
            answer=changed, errors=(404,),
        ),
        Route(
            "POST", f"{schedule}/resume", _changing(b"RESUME"), "Go on from now", answer=changed,
            errors=(404,),
        ),
        Route(
            "POST", f"{schedule}/skip", skip, "Leave out its next occurrence; once more: one more",
            answer=schema(skipped_s=NUMBER), errors=(404,),
        ),
        Route(
            "POST", f"{schedule}/run", run, "Add its job now", answer=ADDED, status=201,
            errors=(404, 409, 503, 507),
        ),
    ]  # fmt: skip
