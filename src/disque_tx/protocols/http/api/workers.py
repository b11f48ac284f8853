"""Workers, each once however many connections it has, as they describe themselves; and commands to
those that take some. What a connection says is a stranger's text until it is read."""

from __future__ import annotations

import json
import math
from collections.abc import AsyncIterator
from typing import Any, Final

import attrs

from disque_tx.client.requests.replies import json_object
from disque_tx.plugins import QUEUE_BYTES_MAX
from disque_tx.protocols.http.api.base.values import (
    FLAG,
    NODES,
    NUMBER,
    REAL,
    ROOT,
    TEXT,
    array,
    schema,
    text,
)
from disque_tx.protocols.http.server.asking import SCOPE, Asked, ask, scope_of
from disque_tx.protocols.http.server.exchange import Exchange, Parameter, Reply
from disque_tx.protocols.http.server.problems import Problem, bad_request
from disque_tx.protocols.http.server.routes import Route
from disque_tx.protocols.http.server.slices import Share
from disque_tx.protocols.http.server.streaming import listing
from disque_tx.worker.base.status import WorkerStatus
from disque_tx.worker.remote.commands import COMMANDS, control_queue

_ROWS: Final = b"100"
_WORKERS_MAX: Final = 1_000
#: Reading a text costs more than looking at so many bytes.
_READING: Final = 8
_CHARACTERS_MAX: Final = 256
_ITEMS_MAX: Final = 100
_NUMBER_MAX: Final = 1 << 40
_STATES: Final = ("taking", "idle", "stopping")
_TTL_S: Final = b"60"
_TIMEOUT_MS: Final = b"2000"


@attrs.define
class _Worker:
    """``values``: what it says. ``heard_s``: how long ago, ``None`` for a worker that only names
    its connections. ``connected``: one of its connections is there. ``nodes``: to which it has or
    had some; ``hosts``: from where."""

    values: dict[str, Any]
    heard_s: float | None
    connected: bool = False
    nodes: list[str] = attrs.Factory(list)
    hosts: list[str] = attrs.Factory(list)

    def seen(self, node: bytes, addr: str, connected: bool) -> None:
        """Count a connection of the worker."""
        self.connected |= connected
        for found, one in ((self.nodes, node.decode()), (self.hosts, addr.rpartition(":")[0])):
            if one not in found:
                found.append(one)

    def serves(self, queue: str) -> bool:
        """Whether the queue is among those that it names."""
        names = (*self.values["queues"], *(row["queue"] for row in self.values["behind"]))
        return queue[:_CHARACTERS_MAX] in names

    def shown(self) -> dict[str, Any]:
        """As people see it."""
        heard_s = self.heard_s
        more = {"connected": self.connected, "nodes": self.nodes, "hosts": self.hosts}
        jobs = [{**job, "for_s": job["for_s"] + (heard_s or 0.0)} for job in self.values["jobs"]]
        return {**self.values, "jobs": jobs, "heard_s": heard_s, **more}


class _Found:
    """Workers by ID; those without one by their name."""

    def __init__(self) -> None:
        self.announced: dict[str, _Worker] = {}
        self._named: dict[str, _Worker] = {}

    def add(self, node: bytes, row: list[Any]) -> None:
        """A row of the question WORKERS."""
        _client, addr, name, connected, age_ms, said = row
        values = read(said) if said else None
        if values is not None:
            worker = self.announced.setdefault(values["id"], _Worker(values, math.inf))
            if worker.heard_s is not None and age_ms / 1000 < worker.heard_s:
                worker.values, worker.heard_s = values, age_ms / 1000
        else:
            status = WorkerStatus.decoded(text(name))
            if status is None or not status.worker:
                return
            worker = self._named.setdefault(status.worker, _Worker(_named(status), None))
        worker.seen(node, text(addr), bool(connected))

    def all(self) -> list[_Worker]:
        """All of them, by name. One that describes itself may have connections on which it has not
        done so."""
        found = list(self.announced.values())
        known = {worker.values["worker"] for worker in found}
        found += [worker for name, worker in self._named.items() if name not in known]
        return sorted(found, key=lambda worker: (worker.values["worker"], worker.values["id"]))


def read(said: bytes) -> dict[str, Any] | None:
    """What a worker says about itself: the members that are known, as far as they are of the right
    kind and size; ``None`` if it does not say who it is."""
    values = json_object(said)
    if values is None:
        return None
    found = {name: _text(values.get(name)) for name in ("id", "worker", "host", "version")}
    if not (found["id"] and found["id"].isalnum() and found["id"].isascii() and found["worker"]):
        return None
    state = values.get("state")
    numbers = ("pid", "slots", "held", "running", "done", "failed")
    jobs = [_job(job) for job in _list(values.get("jobs")) if isinstance(job, dict)]
    return {
        **found,
        **{name: _number(values.get(name)) for name in numbers},
        "state": state if state in _STATES else _STATES[0],
        "control": values.get("control") is True,
        "cut": values.get("cut") is True,
        "queues": [_text(name) for name in _list(values.get("queues"))],
        "tasks": [_text(name) for name in _list(values.get("tasks"))],
        "jobs": jobs,
        "behind": [_behind(row) for row in _list(values.get("behind")) if isinstance(row, dict)],
    }


def _job(job: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {name: _text(job.get(name)) for name in ("id", "queue", "task")}
    found["for_s"] = _real(job.get("for_s"), _NUMBER_MAX)
    if "progress" in job:
        found |= {"progress": _real(job["progress"], 1), "note": _text(job.get("note"))}
    return found


def _behind(row: dict[str, Any]) -> dict[str, Any]:
    found = {"queue": _text(row.get("queue")), "queued": _number(row.get("queued"))}
    return {**found, "oldest_s": _real(row.get("oldest_s"), _NUMBER_MAX)}


def _named(status: WorkerStatus) -> dict[str, Any]:
    """A worker that says no more than the name of its connections."""
    queues = [queue for queue in status.queues if queue is not None]
    said = {"id": "x", "worker": status.worker, "slots": status.slots, "held": status.held}
    found = read(json.dumps({**said, "queues": queues, "cut": None in status.queues}).encode())
    assert found is not None  # for it has an ID and a name
    return {**found, "id": ""}


def _text(value: object) -> str:
    if not isinstance(value, str):
        return ""
    return value[:_CHARACTERS_MAX].encode("utf-8", "replace").decode()


def _number(value: object) -> int:
    return value if type(value) is int and 0 <= value <= _NUMBER_MAX else 0


def _real(value: object, most: float) -> float:
    known = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= most
    return float(value) if known else 0.0  # type: ignore[arg-type]


def _list(value: object) -> list[Any]:
    return value[:_ITEMS_MAX] if isinstance(value, list) else []


async def _collect(exchange: Exchange) -> tuple[_Found, Asked]:
    """The workers of all nodes of the request's scope."""
    found, share = _Found(), Share(exchange.slices)
    asked = await ask(exchange, scope_of(exchange), b"WORKERS", b"0", _ROWS)
    for node, (total, rows) in asked.answers.items():
        first = 0
        while rows:
            for row in rows:
                await share.spend(_READING * len(row[5]))
                found.add(node, row)
            first += len(rows)
            if first >= min(total, _WORKERS_MAX):
                break
            answer = await ask(exchange, node, b"WORKERS", b"%d" % first, _ROWS)
            asked.miss(answer)
            _total, rows = answer.answers.get(node, (0, []))
    return found, asked


async def workers(exchange: Exchange) -> Reply:
    """WORKERS."""
    found, asked = await _collect(exchange)
    queue = exchange.word("queue")
    every = [worker for worker in found.all() if queue is None or worker.serves(queue)]
    limit = exchange.number("limit")

    async def rows() -> AsyncIterator[dict[str, Any]]:
        for worker in every[:limit]:
            yield worker.shown()

    return Reply(listing("workers", rows(), {"total": len(every), **asked.sources()}))


async def tell(exchange: Exchange) -> dict[str, Any]:
    """Add a job to the queue of a worker from which it fetches commands."""
    worker_id, command = text(exchange.path["id"]), exchange.json().get("command")
    if command not in COMMANDS:
        raise bad_request(f"command is one of {', '.join(COMMANDS)}.")
    found, asked = await _collect(exchange)
    worker = found.announced.get(worker_id)
    if worker is None:
        status = 503 if asked.missing else 404
        code = "TRYLATER" if asked.missing else "NOWORKER"
        raise Problem(status, code, "No node that answered knows this worker.")
    if not worker.values["control"]:
        detail = "This worker takes no commands: it was started without --remote-control."
        raise Problem(409, "NOCONTROL", detail)
    by = f"HTTP client {exchange.request.getClientAddress().host}"
    body = json.dumps({"command": command, "by": by}).encode()
    await exchange.call(
        b"ADDJOB", control_queue(worker_id).encode(), body, _TIMEOUT_MS,
        b"REPLICATE", b"1", b"RETRY", b"0", b"TTL", _TTL_S,
    )  # fmt: skip
    name = worker.values["worker"].encode()
    await exchange.call(b"ACTIONS", b"ADD", b"0", b"WORKER", name, command.encode())
    return {"told": True}


def worker_routes() -> list[Route]:
    """All operations on workers."""
    job = schema(id=TEXT, queue=TEXT, task=TEXT, for_s=REAL, progress=REAL, note=TEXT)
    behind = schema(queue=TEXT, queued=NUMBER, oldest_s=REAL)
    worker = schema(
        id=TEXT, worker=TEXT, host=TEXT, pid=NUMBER, version=TEXT, slots=NUMBER, held=NUMBER,
        running=NUMBER, done=NUMBER, failed=NUMBER, state=TEXT, control=FLAG, cut=FLAG,
        queues=array(TEXT), tasks=array(TEXT), jobs=array(job),
        behind=array(behind), connected=FLAG,
        heard_s={"type": ["number", "null"]}, nodes=array(TEXT), hosts=array(TEXT),
    )  # fmt: skip
    return [
        Route(
            "GET", f"{ROOT}/workers", workers, "Workers, each once, and what they do",
            (
                Parameter("limit", "At most so many", "integer", 100, 1, _WORKERS_MAX),
                Parameter("queue", "Only those that serve this queue", longest=QUEUE_BYTES_MAX),
                SCOPE,
            ),
            answer=schema(workers=array(worker), total=NUMBER, **NODES),
        ),
        Route(
            "POST", f"{ROOT}/workers/{{id}}/command", tell, "Tell a worker that was started with"
            " --remote-control to take no more jobs, to take them again, or to stop after its jobs",
            (SCOPE,), body=schema(command={"type": "string", "enum": list(COMMANDS)}),
            answer=schema(told=FLAG), errors=(404, 409, 503, 507),
        ),
    ]  # fmt: skip
