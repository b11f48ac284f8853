"""Jobs: adding, leasing, settling, looking at one."""

from __future__ import annotations

from typing import Any, Final

from disque_tx.protocols.http.api.values import (
    NUMBER,
    ROOT,
    TEXT,
    array,
    job_value,
    pairs,
    schema,
    take_bytes,
    take_ids,
    text,
    url,
)
from disque_tx.protocols.http.exchange import Exchange, Reply, whole
from disque_tx.protocols.http.problems import Problem, bad_request
from disque_tx.protocols.http.routes import Handler, Parameter, Route

_UINT32_MAX: Final = 2**32 - 1
#: Members of a new job → word of ADDJOB, least, most.
_OPTIONS: Final = {
    "replicate": (b"REPLICATE", 1, 65_535),
    "delay_s": (b"DELAY", 0, _UINT32_MAX),
    "retry_s": (b"RETRY", 0, _UINT32_MAX),
    "ttl_s": (b"TTL", 1, _UINT32_MAX),
    "maxlen": (b"MAXLEN", 1, 2**63 - 1),
}
_TIMEOUT_MS_MAX: Final = 60_000
_COUNT_MAX: Final = 1_000
#: Path → command and summary, for one job and for several.
_ACTIONS: Final = {
    "ack": (b"ACKJOB", "Acknowledge: the work is done, on all nodes"),
    "fastack": (b"FASTACK", "Acknowledge quickly; a job may rarely be delivered again"),
    "nack": (b"NACK", "Return to the queue: the work failed"),
    "enqueue": (b"ENQUEUE", "Queue at once, whatever its delay"),
    "dequeue": (b"DEQUEUE", "Take out of the queue, without losing it"),
    "delete": (b"DELJOB", "Delete from this node"),
}
_JOB: Final = schema(
    id=TEXT, queue=TEXT, url=TEXT, body=TEXT, body_base64=TEXT, nacks=NUMBER,
    additional_deliveries=NUMBER,
)  # fmt: skip
_SHOWN: Final = schema(
    id=TEXT, queue={"type": ["string", "null"]}, state=TEXT, repl=NUMBER, ttl=NUMBER, ctime=NUMBER,
    delay=NUMBER, retry=NUMBER, nacks=NUMBER, additional_deliveries=NUMBER,
    nodes_delivered=array(TEXT), nodes_confirmed=array(TEXT),
    next_requeue_within={"type": ["integer", "null"]}, next_awake_within=NUMBER,
    body={"type": ["string", "null"]}, body_base64=TEXT,
)  # fmt: skip


async def add(exchange: Exchange) -> Reply:
    """ADDJOB."""
    values = exchange.json()
    body = take_bytes(values, "body")
    timeout = whole("timeout_ms", values.get("timeout_ms", 5_000), 1, _TIMEOUT_MS_MAX)
    words = [b"ADDJOB", exchange.path["queue"], body, b"%d" % timeout]
    for name, (word, least, most) in _OPTIONS.items():
        if values.get(name) is not None:
            words += [word, b"%d" % whole(name, values[name], least, most)]
    asynchronous = values.get("async", False)
    if not isinstance(asynchronous, bool):
        raise bad_request("async must be true or false.")
    if asynchronous:
        words.append(b"ASYNC")
    job_id = (await exchange.call(*words)).text
    where = url("jobs", job_id)
    return Reply({"id": text(job_id), "url": where}, 201, headers={"Location": where})


async def lease(exchange: Exchange) -> dict[str, Any]:
    """GETJOB; a client that goes away meanwhile takes no job with it."""
    count, wait_ms = exchange.number("count"), exchange.number("wait_ms")
    how = (b"TIMEOUT", b"%d" % wait_ms) if wait_ms else (b"NOHANG",)
    options = (*how, b"WITHCOUNTERS", b"COUNT", b"%d" % count)
    jobs = await exchange.call(b"GETJOB", *options, b"FROM", exchange.path["queue"])
    return {"jobs": [job_value(job) for job in jobs or []]}


async def show(exchange: Exchange) -> dict[str, Any]:
    """SHOW."""
    shown = await exchange.call(b"SHOW", exchange.path["id"])
    if shown is None:
        raise Problem(404, "NOJOB", "This node does not know the job.")
    return pairs(shown)


async def working(exchange: Exchange) -> dict[str, Any]:
    """WORKING."""
    return {"retry_s": await exchange.call(b"WORKING", exchange.path["id"])}


def _one(command: bytes) -> Handler:
    async def act(exchange: Exchange) -> dict[str, Any]:
        return {"count": await exchange.call(command, exchange.path["id"])}

    return act


def _several(command: bytes) -> Handler:
    async def act(exchange: Exchange) -> dict[str, Any]:
        return {"count": await exchange.call(command, *take_ids(exchange.json()))}

    return act


def job_routes() -> list[Route]:
    """All operations on jobs."""
    queue, job, jobs = f"{ROOT}/queues/{{queue}}", f"{ROOT}/jobs/{{id}}", f"{ROOT}/jobs"
    new = schema(
        body=TEXT, body_base64=TEXT, timeout_ms=NUMBER, **{"async": {"type": "boolean"}},
        **dict.fromkeys(_OPTIONS, NUMBER),
    )  # fmt: skip
    counted = schema(count=NUMBER)
    routes = [
        Route(
            "POST", f"{queue}/jobs", add, "Add a job", body=new, answer=schema(id=TEXT, url=TEXT),
            status=201, errors=(409, 503, 507),
        ),
        Route(
            "POST", f"{queue}/lease", lease, "Lease jobs: each is delivered again unless it is"
            " acknowledged before its RETRY",
            (
                Parameter("count", "Jobs at most", "integer", 1, 1, _COUNT_MAX),
                Parameter("wait_ms", "Wait so long for one", "integer", 0, 0, _TIMEOUT_MS_MAX),
            ),
            answer=schema(jobs=array(_JOB)), errors=(503,),
        ),
        Route("GET", job, show, "A job as this node knows it", answer=_SHOWN, errors=(404,)),
        Route(
            "POST", f"{job}/working", working, "Renew the lease",
            answer=schema(retry_s=NUMBER), errors=(404, 410),
        ),
        Route("DELETE", job, _one(b"DELJOB"), "Delete from this node", answer=counted),
    ]  # fmt: skip
    for name, (command, summary) in _ACTIONS.items():
        body = schema(ids=array(TEXT))
        if name != "delete":
            routes.append(Route("POST", f"{job}/{name}", _one(command), summary, answer=counted))
        routes.append(
            Route(
                "POST",
                f"{jobs}/{name}",
                _several(command),
                f"{summary}: several",
                body=body,
                answer=counted,
            )
        )
    return routes
