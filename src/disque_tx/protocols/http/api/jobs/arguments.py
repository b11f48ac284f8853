"""What a job asks for: its task and arguments, out of the envelopes of task queues. Nothing of a
body is ever run: of a pickle only its opcodes are listed."""

from __future__ import annotations

import json
import re
import zlib
from base64 import b64decode
from pickletools import genops
from typing import Any, Final

from disque_tx.protocols.http.api.base.holders import at_one, holders
from disque_tx.protocols.http.api.base.values import ROOT, TEXT, array, schema
from disque_tx.protocols.http.api.jobs.messagepack import is_container, unpacked
from disque_tx.protocols.http.server.asking import NODE, SCOPE, ask, several
from disque_tx.protocols.http.server.exchange import Exchange
from disque_tx.protocols.http.server.problems import Problem
from disque_tx.protocols.http.server.routes import Route
from disque_tx.protocols.http.server.slices import Share
from disque_tx.worker.settling.deadletters import Letter, NotADeadLetter

#: Bytes of a body that is read, and of what it may become when it is decompressed.
BODY_BYTES_MAX: Final = 64 * 1024
#: Opcodes that are listed, and characters of the value of each.
_OPCODES_MAX: Final = 300
_VALUE_MAX: Final = 100
#: Reading a body costs more than looking at so many bytes.
_READING: Final = 8
_PICKLE: Final = b"\x80"
_ZLIB: Final = b"\x78"
#: Members that make an object the envelope of a task queue; the first match is used. Where its
#: task is, and what of it is no option.
_ENVELOPES: Final = (
    ("dramatiq", ("actor_name", "args", "kwargs", "message_id"), "actor_name"),
    ("django", ("task", "args", "kwargs", "backend", "status"), "task"),
    ("task", ("task",), "task"),
)
_CALL: Final = frozenset(("args", "kwargs", "task", "actor_name"))
#: W3C's Trace Context: the member that carries it, and its form; the ID is not all zeros.
_TRACE_MEMBER: Final = "traceparent"
_TRACE: Final = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}")


def read(body: bytes) -> dict[str, Any]:
    """The ``envelope``: ``celery``, ``dramatiq``, ``django``, ``task`` (of the workers of Disque),
    ``json``, ``msgpack``, ``pickle`` or ``none``; with ``task``, ``args``, ``kwargs`` and
    ``options`` as far as they are known, the ``value`` of MessagePack without an envelope, and the
    ``opcodes`` of a pickle. That of a dead letter is the one of its job."""
    try:
        body = Letter.decoded(body).body
    except NotADeadLetter:
        pass
    if body[:1] in (_PICKLE, _ZLIB):
        return _pickle(body)
    plain: dict[str, Any] = {"envelope": "json"}
    try:
        if is_container(body):
            value = unpacked(body)
            plain = {"envelope": "msgpack", "value": value}
        else:
            value = json.loads(body)
    except (ValueError, RecursionError):
        return {"envelope": "none"}
    if not isinstance(value, dict):
        return plain
    if isinstance(value.get("headers"), dict) and isinstance(value.get("properties"), dict):
        return _kombu(value)
    for name, members, task in _ENVELOPES:
        if all(member in value for member in members) and isinstance(value[task], str):
            options = {key: one for key, one in value.items() if key not in _CALL}
            return _call(name, value[task], value.get("args"), value.get("kwargs"), options)
    return plain


def trace_id(found: dict[str, Any]) -> str:
    """The trace of whoever added a job, by what was read in its body; empty if there is none."""
    options = found.get("options")
    if not isinstance(options, dict):
        return ""
    # dramatiq has options of its own among those.
    for members in (options, *(one for one in options.values() if isinstance(one, dict))):
        value = members.get(_TRACE_MEMBER)
        if isinstance(value, str) and (matched := _TRACE.fullmatch(value)):
            return matched[1]
    return ""


def _call(envelope: str, task: str, args: Any, kwargs: Any, options: Any) -> dict[str, Any]:
    return {
        "envelope": envelope,
        "task": task,
        "args": args if isinstance(args, list) else [],
        "kwargs": kwargs if isinstance(kwargs, dict) else {},
        "options": options,
    }


def _kombu(message: dict[str, Any]) -> dict[str, Any]:
    """A message of Celery: its headers name the task, its body has the arguments."""
    headers, properties = message["headers"], message["properties"]
    task, body = headers.get("task"), message.get("body")
    if not isinstance(task, str) or not isinstance(body, str):
        return {"envelope": "json"}
    data = body.encode("utf-8", "replace")
    if properties.get("body_encoding") == "base64":
        try:
            data = b64decode(data, validate=True)
        except ValueError:
            data = b""
    found = _call("celery", task, [], {}, {k: v for k, v in headers.items() if k != "task"})
    if data[:1] in (_PICKLE, _ZLIB):
        return {**found, **_opcodes(data)}
    try:
        args, kwargs, *_embedded = unpacked(data) if is_container(data) else json.loads(data)
    except (ValueError, TypeError, RecursionError):
        return found
    return _call("celery", task, args, kwargs, found["options"])


def _pickle(data: bytes) -> dict[str, Any]:
    """Read a pickle, such as the data of a job of RQ, which is compressed."""
    found = _opcodes(data)
    return {"envelope": "pickle" if found["opcodes"] else "none", **found}


def _opcodes(data: bytes) -> dict[str, Any]:
    """What a pickle would do, opcode by opcode; it is not done."""
    if data[:1] == _ZLIB:
        try:
            data = zlib.decompressobj().decompress(data, BODY_BYTES_MAX)
        except zlib.error:
            return {"opcodes": []}
    listed: list[str] = []
    if data[:1] != _PICKLE:
        return {"opcodes": listed}
    try:
        for opcode, argument, _place in genops(data):
            shown = "" if argument is None else f" {_short(argument)}"
            listed.append(f"{opcode.name}{shown}")
            if len(listed) >= _OPCODES_MAX:
                break
    except (ValueError, IndexError, OverflowError, UnicodeError):
        listed.append("(damaged from here on)")
    return {"opcodes": listed}


def _short(argument: object) -> str:
    if isinstance(argument, bytes | bytearray | str):
        argument = argument[:_VALUE_MAX]
    elif isinstance(argument, int) and abs(argument) >= 1 << 64:
        return "(a long number)"
    return repr(argument)[:_VALUE_MAX]


async def arguments(exchange: Exchange) -> dict[str, Any]:
    """The task and the arguments of a job."""
    job_id = exchange.path["id"]
    words = (b"BODIES", b"%d" % BODY_BYTES_MAX, b"0", job_id)
    rows: list[Any]
    if several(exchange):
        (nodes,), _asked = await holders(exchange, [job_id])
        rows = await at_one(exchange, nodes[0], *words) if nodes else [None]
    else:
        (rows,) = (await ask(exchange, NODE, *words)).answers.values()
    if rows[0] is None:
        raise Problem(404, "NOJOB", "No node that was asked knows the job.")
    size, body = rows[0]
    if size > len(body):
        return {"envelope": "none"}
    share = Share(exchange.slices)
    await share.spend(_READING * size)
    found = read(body)
    trace = trace_id(found)
    if not trace:
        return found
    found["trace_id"] = trace
    if template := exchange.host.settings.trace_url:
        found["trace_url"] = template.replace("{trace_id}", trace)
    return found


def argument_routes() -> list[Route]:
    """The one operation."""
    values: dict[str, Any] = {"type": "object"}
    return [
        Route(
            "GET", f"{ROOT}/jobs/{{id}}/arguments", arguments, "The task and the arguments in a"
            " job of up to 64 KiB, or in the job of a dead letter, as task queues write them",
            (SCOPE,),
            answer=schema(
                envelope=TEXT, task=TEXT, args={"type": "array"}, kwargs=values, options=values,
                value={}, opcodes=array(TEXT), trace_id=TEXT, trace_url=TEXT,
            ),
            errors=(404, 503),
        ),
    ]  # fmt: skip
