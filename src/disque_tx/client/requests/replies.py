"""Parsed replies to values. A reply is untrusted input.

Every function takes a reply and returns a value, or raises :class:`MalformedReply`. Where RESP2
answers with an array of alternating names and values, RESP3 may answer with a map; both are
accepted (client protocol, sections 11 to 19).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final, TypeVar

from disque_tx.client.values import (
    ClusterNode,
    Hello,
    Job,
    JobDetails,
    JobProgress,
    NodeInfo,
    QueueStat,
)

_ID_BYTES: Final = 40
_T = TypeVar("_T")


class MalformedReply(ValueError):
    """A reply does not have the type or the form that its command answers with."""

    def __init__(self, expected: str, got: object) -> None:
        super().__init__(f"{expected} was expected, not {type(got).__name__}")


def anything(reply: Any) -> Any:
    """The reply unchanged."""
    return reply


def json_object(text: bytes | str) -> dict[str, Any] | None:
    """The object in a stranger's text in JSON; ``None`` for anything else."""
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return values if isinstance(values, dict) else None


def integer(reply: Any) -> int:
    """A number."""
    if type(reply) is not int:
        raise MalformedReply("a number", reply)
    return reply


def data(reply: Any) -> bytes:
    """Bytes."""
    if type(reply) is not bytes:
        raise MalformedReply("a string", reply)
    return reply


def text(reply: Any) -> str:
    """A string or a status as text."""
    return data(reply).decode("utf-8", "surrogateescape")


def done(reply: Any) -> None:
    """A status whose text does not matter."""
    text(reply)


def yes(reply: Any) -> bool:
    """Yes or no."""
    return text(reply) == "yes"


def always(value: _T) -> Callable[[Any], _T]:
    """For a status whose text does not matter: the value that the request has set."""

    def parse(reply: Any) -> _T:
        text(reply)
        return value

    return parse


def decimal(reply: Any) -> int:
    """A number that travels as a string."""
    digits = data(reply)
    if not digits.isdigit() or len(digits) > 20:
        raise MalformedReply("a number in decimal", reply)
    return int(digits)


def job_id(reply: Any) -> str:
    """The ID of a job."""
    if len(data(reply)) != _ID_BYTES or not reply.isascii():
        raise MalformedReply("a job ID", reply)
    return str(reply, "ascii")


def array(reply: Any) -> list[Any]:
    """An array."""
    if not isinstance(reply, list):
        raise MalformedReply("an array", reply)
    return reply


def optional(reply: Any, parse: Callable[[Any], _T]) -> _T | None:
    """``None`` for nil, otherwise the parsed reply."""
    return None if reply is None else parse(reply)


def texts(reply: Any) -> tuple[str, ...]:
    """An array of strings."""
    return tuple([text(item) for item in array(reply)])


def lines(reply: Any) -> dict[str, str]:
    """The fields of INFO and of CLUSTER INFO: lines of name, colon and value."""
    fields = (line.partition(":") for line in text(reply).splitlines())
    return {name: value for name, colon, value in fields if colon}


def fields(reply: Any) -> dict[str, Any]:
    """An array of alternating names and values, or a map."""
    if isinstance(reply, dict):
        return {text(name): value for name, value in reply.items()}
    flat = array(reply)
    if len(flat) % 2:
        raise MalformedReply("names with values", reply)
    return {text(name): value for name, value in zip(flat[::2], flat[1::2], strict=True)}


# -- jobs ----------------------------------------------------------------------------------------


def jobs(reply: Any) -> list[Job]:
    """GETJOB and QPEEK; nil for no jobs (sections 15 and 19)."""
    return [] if reply is None else [_job(item) for item in array(reply)]


def _job(reply: Any) -> Job:
    if not isinstance(reply, list) or len(reply) not in (3, 7):
        raise MalformedReply("a job of 3 or 7 parts", reply)
    if len(reply) == 3:
        return Job(text(reply[0]), job_id(reply[1]), data(reply[2]))
    queue, identifier, body, _, nacks, _, more = reply
    return Job(text(queue), job_id(identifier), data(body), integer(nacks), integer(more))


def details(reply: Any) -> JobDetails | None:
    """SHOW; nil for a job the node does not know (section 18)."""
    if reply is None:
        return None
    of = Named(reply)
    return JobDetails(
        id=of("id", job_id),
        queue=of("queue", _text_or_nil),
        state=of("state", text),
        replicate=of("repl", integer),
        ttl_s=of("ttl", integer),
        ctime=of("ctime", integer),
        delay_s=of("delay", integer),
        retry_s=of("retry", integer),
        nacks=of("nacks", integer),
        additional_deliveries=of("additional-deliveries", integer),
        nodes_delivered=of("nodes-delivered", texts),
        nodes_confirmed=of("nodes-confirmed", texts),
        next_requeue_ms=of("next-requeue-within", _integer_or_nil),
        next_awake_ms=of("next-awake-within", _integer_or_nil),
        body=of("body", _data_or_nil),
        progress=_progress(of) if "progress" in of else None,
    )


def _progress(of: Named) -> JobProgress:
    """What nodes of this package add to SHOW."""
    shown = of("progress", text)
    try:
        fraction = float(shown)
    except ValueError:
        raise MalformedReply("a progress", shown) from None
    if not 0 <= fraction <= 1:
        raise MalformedReply("a progress", shown)
    note = of("progress-note", data).decode("utf-8", "replace")
    return JobProgress(fraction, note, of("progress-age", integer))


def _described(reply: Any) -> JobDetails:
    found = details(reply)
    if found is None:
        raise MalformedReply("a job", reply)
    return found


# -- queues --------------------------------------------------------------------------------------


def stat(reply: Any) -> QueueStat | None:
    """QSTAT; nil for a queue the node does not know (section 19)."""
    if reply is None:
        return None
    of = Named(reply)
    return QueueStat(
        name=of("name", text),
        length=of("len", integer),
        age_s=of("age", integer),
        idle_s=of("idle", integer),
        blocked=of("blocked", integer),
        import_from=of("import-from", texts),
        import_rate=of("import-rate", integer),
        jobs_in=of("jobs-in", integer),
        jobs_out=of("jobs-out", integer),
        pause=of("pause", text),
    )


def names(reply: Any) -> tuple[int, list[str]]:
    """QSCAN: the next cursor, 0 at the end, and the names of queues."""
    cursor, items = _page(reply)
    return cursor, [text(item) for item in items]


def descriptions(reply: Any) -> tuple[int, list[JobDetails]]:
    """JSCAN with REPLY all: the next cursor, 0 at the end, and jobs."""
    cursor, items = _page(reply)
    return cursor, [_described(item) for item in items]


def _page(reply: Any) -> tuple[int, list[Any]]:
    parts = array(reply)
    if len(parts) != 2:
        raise MalformedReply("a cursor and items", reply)
    return decimal(parts[0]), array(parts[1])


# -- nodes ---------------------------------------------------------------------------------------


def hello(reply: Any) -> Hello:
    """HELLO: its version, the ID of the node that answers, and all nodes (section 11)."""
    parts = array(reply)
    if len(parts) < 3 or integer(parts[0]) != 1:
        raise MalformedReply("HELLO's version 1 with nodes", reply)
    return Hello(text(parts[1]), tuple([_node(item) for item in parts[2:]]))


def _node(reply: Any) -> NodeInfo:
    parts = array(reply)
    if len(parts) != 4:
        raise MalformedReply("a node of 4 parts", reply)
    return NodeInfo(text(parts[0]), text(parts[1]), decimal(parts[2]), decimal(parts[3]))


def cluster_nodes(reply: Any) -> list[ClusterNode]:
    """The lines of CLUSTER NODES (section 12.1)."""
    return [_cluster_node(line) for line in data(reply).splitlines()]


def _cluster_node(line: bytes) -> ClusterNode:
    words = line.split(b" ")
    if len(words) != 6:
        raise MalformedReply("a line of 6 words", line)
    node_id, address, flags, ping_ms, pong_ms, link = words
    return ClusterNode(
        id=text(node_id),
        address=text(address),
        flags=frozenset(text(flags).split(",")) - {"noflags"},
        ping_sent_ms=decimal(ping_ms),
        pong_received_ms=decimal(pong_ms),
        connected=link == b"connected",
    )


class Named:
    """The fields of a reply by name, each parsed as its type."""

    def __init__(self, reply: Any) -> None:
        self._fields = fields(reply)

    def __call__(self, name: str, parse: Callable[[Any], _T]) -> _T:
        if name not in self._fields:
            raise MalformedReply(f"a field {name!r}", self._fields)
        return parse(self._fields[name])

    def __contains__(self, name: str) -> bool:
        return name in self._fields


def _text_or_nil(reply: Any) -> str | None:
    return optional(reply, text)


def _data_or_nil(reply: Any) -> bytes | None:
    return optional(reply, data)


def _integer_or_nil(reply: Any) -> int | None:
    return optional(reply, integer)
