"""Jobs: leasing, settling, looking at one."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any, Final

from disque_tx.protocols.http.api.base.bodies import BODIES_MAX, PART_BYTES, with_body
from disque_tx.protocols.http.api.base.holders import act, at_one, holders
from disque_tx.protocols.http.api.base.values import (
    NUMBER,
    REAL,
    ROOT,
    TEXT,
    array,
    job_value,
    pairs,
    schema,
    take_ids,
    take_number,
    take_text,
    text,
)
from disque_tx.protocols.http.api.jobs.waiting import TIMEOUT_MS_MAX
from disque_tx.protocols.http.server.asking import (
    CLUSTER,
    NODE,
    SCOPE,
    ask,
    chosen_scope,
    several,
    source,
)
from disque_tx.protocols.http.server.exchange import Exchange, Parameter, Reply
from disque_tx.protocols.http.server.problems import Problem, bad_request
from disque_tx.protocols.http.server.routes import IDS_BODY_BYTES, Handler, Route
from disque_tx.protocols.http.server.slices import SLICE_BYTES, Slices
from disque_tx.protocols.http.server.streaming import encoded

_COUNT_MAX: Final = 1_000
#: What OUTLINE has besides SHOW.
_PLACE: Final = ("place", "place_age")
#: Other holders of a job that are asked for its progress.
_ASKED_MAX: Final = 5
#: Path → command and summary, for one job and for several.
_ACTIONS: Final = {
    "ack": (b"ACKJOB", "Acknowledge: the work is done, on all nodes"),
    "fastack": (b"FASTACK", "Acknowledge quickly; a job may rarely be delivered again"),
    "enqueue": (b"ENQUEUE", "Queue at once, whatever its delay"),
    "dequeue": (b"DEQUEUE", "Remove from the queue and keep: queued again after RETRY"),
    "delete": (b"DELJOB", "Delete from this daemon"),
}
_JOB: Final = schema(
    id=TEXT, queue=TEXT, url=TEXT, body=TEXT, body_base64=TEXT, nacks=NUMBER,
    additional_deliveries=NUMBER,
)  # fmt: skip
#: A job as SHOW describes it.
SHOWN: Final = schema(
    id=TEXT, queue={"type": ["string", "null"]}, state=TEXT, repl=NUMBER, ttl=NUMBER, ctime=NUMBER,
    delay=NUMBER, retry=NUMBER, nacks=NUMBER, additional_deliveries=NUMBER,
    nodes_delivered=array(TEXT), nodes_confirmed=array(TEXT),
    next_requeue_within={"type": ["integer", "null"]}, next_awake_within=NUMBER,
    holders=array(TEXT), progress=REAL, progress_note=TEXT, progress_age=NUMBER,
    place=TEXT, place_age=NUMBER,
    body={"type": ["string", "null"]}, body_base64=TEXT, node=TEXT, process=NUMBER,
)  # fmt: skip


async def lease(exchange: Exchange) -> Reply:
    """GETJOB; a client that goes away meanwhile takes no job with it."""
    wanted, wait_ms = exchange.number("count"), exchange.number("wait_ms")
    count, size = _fitting(exchange, wanted)
    if size > SLICE_BYTES:
        await exchange.slices.turn()  # many that lease much at once take turns
        count, _size = _fitting(exchange, wanted)
    how = (b"TIMEOUT", b"%d" % wait_ms) if wait_ms else (b"NOHANG",)
    options = (*how, b"WITHCOUNTERS", b"COUNT", b"%d" % count)
    jobs = await exchange.call(b"GETJOB", *options, b"FROM", exchange.path["queue"])
    return Reply(_leased(jobs or [], exchange.slices))


def _fitting(exchange: Exchange, count: int) -> tuple[int, int]:
    """How many of the next jobs of the queue fit into one answer, and the bytes of their bodies;
    one does, whatever its size. Of a queue without jobs as many as are wanted: they do not all
    come at once."""
    view, size = exchange.host.view, 0
    for fitting, job_id in enumerate(view.queued(exchange.path["queue"], count)):
        known = view.body(job_id, 0)
        more = known[1] if known is not None else 0
        if fitting and size + more > BODIES_MAX:
            return fitting, size
        size += more
    return count, size


async def _leased(jobs: list[list[Any]], slices: Slices) -> AsyncGenerator[bytes, None]:
    """The answer, in pieces that are short also where a body is not."""
    yield b'{"jobs":['
    for number, job in enumerate(jobs):
        if number:
            yield b","
        queue, job_id, body, *rest = job
        if len(body) <= PART_BYTES:
            yield encoded(job_value(job))
            continue
        values = job_value([queue, job_id, b"", *rest])
        del values["body"]
        async for piece in with_body(values, body, slices):
            yield piece
    yield b"]}"


async def show(exchange: Exchange) -> dict[str, Any] | Reply:
    """SHOW, of the node that has to do with the job; ``holders``: all that know it."""
    job_id, of = exchange.path["id"], dict[str, Any]()
    who = "This node does not know"
    if several(exchange):
        (nodes,), asked = await holders(exchange, [job_id])
        who = "No node of the cluster knows"
        if chosen_scope(exchange) != CLUSTER:
            who = "No process of this daemon knows"
        if not nodes and asked.missing:
            raise Problem(503, "TRYLATER", f"{who} the job, but one does not answer at present.")
        shown = await at_one(exchange, nodes[0], b"SHOW", job_id) if nodes else None
        if shown is not None:
            of = await _progress_elsewhere(exchange, shown, nodes[1:])
            of |= await _place(exchange, shown, nodes[0])
        of |= source(exchange, nodes[0]) if nodes else {}
        of["holders"] = [text(node) for node in nodes]
    else:
        shown = await exchange.call(b"SHOW", job_id)
        if shown is not None:
            of = await _place(exchange, shown, NODE)
    if shown is None:
        raise Problem(404, "NOJOB", f"{who} the job.")
    body = shown[-1]
    if body is None:
        return {**pairs(shown), **of}
    return Reply(with_body({**of, **pairs(shown[:-2])}, body, exchange.slices))


async def _place(exchange: Exchange, shown: list[Any], node: bytes) -> dict[str, Any]:
    """Where an active job is at the node that shows it, and for how long; nodes of earlier versions
    do not say."""
    if pairs(shown[:-2])["state"] != "active":
        return {}
    answers = (await ask(exchange, node, b"OUTLINE", exchange.path["id"])).answers
    outline = next((pairs(one) for one in answers.values() if one), {})
    return {name: outline[name] for name in _PLACE if name in outline}


async def _progress_elsewhere(
    exchange: Exchange, shown: list[Any], others: list[bytes]
) -> dict[str, Any]:
    """The latest progress of a job in flight that another holder knows, to which its consumer is
    connected, if the node that shows the job knows none."""
    values = pairs(shown[:-2])
    if values["state"] != "active" or "progress" in values:
        return {}
    found: list[dict[str, Any]] = []
    for node in others[:_ASKED_MAX]:
        answers = (await ask(exchange, node, b"OUTLINE", exchange.path["id"])).answers
        outline = pairs(answers.get(node) or [])
        if "progress" in outline:
            names = [name for name in outline if name.startswith("progress")]
            found.append({name: outline[name] for name in names})
    return min(found, key=lambda one: int(one["progress_age"]), default={})


async def working(exchange: Exchange) -> dict[str, Any]:
    """WORKING."""
    job_id, values = exchange.path["id"], exchange.json()
    options: list[bytes] = []
    if values.get("progress") is not None:
        fraction = values["progress"]
        take_number("progress", fraction)
        if not 0 <= fraction <= 1:
            raise bad_request("progress must be a number from 0 to 1.")
        options = [b"PROGRESS", b"%.3f" % fraction]
        if values.get("note") is not None:
            options += [b"NOTE", take_text("note", values["note"])]
    return {"retry_s": await act(exchange, b"WORKING", [], [job_id], options)}


async def nack(exchange: Exchange) -> dict[str, Any]:
    """NACK of one job."""
    words = _failure_words(exchange.json())
    return {"count": await act(exchange, b"NACK", words, [exchange.path["id"]])}


async def nack_several(exchange: Exchange) -> dict[str, Any]:
    """NACK of several jobs, for the same reason."""
    values = exchange.json()
    words = _failure_words(values)
    return {"count": await act(exchange, b"NACK", words, take_ids(values))}


def _failure_words(values: dict[str, Any]) -> list[bytes]:
    words = []
    if values.get("delay_s") is not None:
        words += [b"DELAY", take_number("delay_s", values["delay_s"])]
    if values.get("reason") is not None:
        words += [b"REASON", take_text("reason", values["reason"])]
    return words


def _one(command: bytes) -> Handler:
    async def run(exchange: Exchange) -> dict[str, Any]:
        return {"count": await act(exchange, command, [], [exchange.path["id"]])}

    return run


def _several(command: bytes) -> Handler:
    async def run(exchange: Exchange) -> dict[str, Any]:
        return {"count": await act(exchange, command, [], take_ids(exchange.json()))}

    return run


def job_routes() -> list[Route]:
    """All operations on jobs that exist."""
    queue, job, jobs = f"{ROOT}/queues/{{queue}}", f"{ROOT}/jobs/{{id}}", f"{ROOT}/jobs"
    counted, ids = schema(count=NUMBER), array(TEXT)
    failed = "Return to the queue: the work failed"
    return [
        Route(
            "POST", f"{queue}/lease", lease, "Lease jobs: each is delivered again unless it is"
            " acknowledged before its RETRY. Fewer than count if their bodies have more than 4 MiB"
            " together",
            (
                Parameter("count", "Jobs at most", "integer", 1, 1, _COUNT_MAX),
                Parameter("wait_ms", "Wait so long for one", "integer", 0, 0, TIMEOUT_MS_MAX),
            ),
            answer=schema(jobs=array(_JOB)), errors=(503,),
        ),
        Route("GET", job, show, "A job as the node knows it that has to do with it", (SCOPE,),
            answer=SHOWN, errors=(404, 503)),
        Route(
            "POST", f"{job}/working", working, "Renew the lease, and report how far the job is,"
            " from 0 to 1, with a note of up to 256 bytes", (SCOPE,),
            body=schema(progress=REAL, note=TEXT), answer=schema(retry_s=NUMBER),
            errors=(404, 410, 503),
        ),
        Route(
            "POST", f"{job}/nack", nack, failed, (SCOPE,), body=schema(delay_s=REAL, reason=TEXT),
            body_max=IDS_BODY_BYTES, answer=counted, errors=(503, 507),
        ),
        Route(
            "POST", f"{jobs}/nack", nack_several, f"{failed}: several", (SCOPE,),
            body=schema(ids=ids, delay_s=REAL, reason=TEXT), body_max=IDS_BODY_BYTES,
            answer=counted, errors=(503, 507),
        ),
        Route("DELETE", job, _one(b"DELJOB"), "Delete from this daemon", (SCOPE,), answer=counted),
        *_action_routes(job, jobs),
    ]  # fmt: skip


def _action_routes(job: str, jobs: str) -> list[Route]:
    """What is done with one job, or with several."""
    routes: list[Route] = []
    counted = schema(count=NUMBER)
    for name, (command, summary) in _ACTIONS.items():
        if name != "delete":
            routes.append(
                Route("POST", f"{job}/{name}", _one(command), summary, (SCOPE,), answer=counted)
            )
        routes.append(
            Route(
                "POST",
                f"{jobs}/{name}",
                _several(command),
                f"{summary}: several",
                (SCOPE,),
                body=schema(ids=array(TEXT)),
                body_max=IDS_BODY_BYTES,
                answer=counted,
            )
        )
    return routes
