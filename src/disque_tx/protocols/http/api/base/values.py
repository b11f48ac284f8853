"""Values of the node as JSON, and back."""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import Any, Final

from disque_tx.plugins import QUEUE_BYTES_MAX
from disque_tx.protocols.http.server.problems import Problem, bad_request
from disque_tx.protocols.http.server.routes import segment

ROOT: Final = "/api/v1"
TEXT: Final[dict[str, Any]] = {"type": "string"}
NUMBER: Final[dict[str, Any]] = {"type": ["integer", "string"]}
REAL: Final[dict[str, Any]] = {"type": "number"}
FLAG: Final[dict[str, Any]] = {"type": "boolean"}


def text(data: bytes) -> str:
    """A name for people; bytes that are not UTF-8 are shown as escapes."""
    return data.decode("utf-8", "backslashreplace")


def url(*segments: str | bytes) -> str:
    """A path of this API; the segments are encoded."""
    return "/".join([ROOT, *map(segment, segments)])


def put_bytes(values: dict[str, Any], name: str, data: bytes) -> None:
    """Add bytes as text if they are UTF-8, otherwise as ``<name>_base64``."""
    try:
        values[name] = data.decode()
    except UnicodeDecodeError:
        values[f"{name}_base64"] = b64encode(data).decode()


def take_bytes(values: dict[str, Any], name: str) -> bytes:
    """The bytes in ``name`` or ``<name>_base64``, of which there must be one."""
    plain, encoded = values.get(name), values.get(f"{name}_base64")
    if (plain is None) == (encoded is None):
        raise bad_request(f"Give either {name} or {name}_base64.")
    if encoded is None:
        return take_text(name, plain)
    try:
        if isinstance(encoded, str | bytes):
            return b64decode(encoded, validate=True)
    except ValueError as error:
        raise bad_request(f"{name}_base64 is not valid: {error}.") from None
    raise bad_request(f"{name}_base64 must be a string.")


def take_queue(values: dict[str, Any], name: str) -> bytes:
    """The name of a queue, as :func:`take_bytes`."""
    queue = take_bytes(values, name)
    if len(queue) > QUEUE_BYTES_MAX:
        raise bad_request(f"{name} has {QUEUE_BYTES_MAX} bytes at most.")
    return queue


def take_text(name: str, value: object) -> bytes:
    """A string as UTF-8; long ones are that already (see ``largejson``)."""
    if isinstance(value, bytes):
        return value
    if not isinstance(value, str):
        raise bad_request(f"{name} must be a string.")
    try:
        return value.encode()
    except ValueError as error:
        raise bad_request(f"{name} is not valid: {error}.") from None


def take_number(name: str, value: object) -> bytes:
    """A number that may have decimals, as digits; the node checks its range."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise bad_request(f"{name} must be a number.")
    return repr(value).encode()


def take_flag(values: dict[str, Any], name: str) -> bool:
    """A member that is true or false, false if it is absent."""
    value = values.get(name, False)
    if not isinstance(value, bool):
        raise bad_request(f"{name} must be true or false.")
    return value


def take_ids(values: dict[str, Any], most: int = 1_000) -> list[bytes]:
    """The IDs of jobs in ``ids``."""
    ids = values.get("ids")
    if not isinstance(ids, list) or not 0 < len(ids) <= most:
        raise bad_request(f"ids must be an array of 1 to {most} strings.")
    if not all(isinstance(job_id, str) and job_id.isascii() for job_id in ids):
        raise Problem(400, "BADID", "Invalid Job ID format.")
    return [job_id.encode() for job_id in ids]


def job_value(job: list[Any]) -> dict[str, Any]:
    """A job as GETJOB and QPEEK return it."""
    queue, job_id, body, *rest = job
    values: dict[str, Any] = {"id": text(job_id), "queue": text(queue), "url": url("jobs", job_id)}
    put_bytes(values, "body", body)
    for name, value in zip(rest[::2], rest[1::2], strict=True):
        values[member_name(name)] = value
    return values


def pairs(flat: list[Any]) -> dict[str, Any]:
    """A flat list of names and values, as SHOW returns it; ``body`` as in :func:`put_bytes`."""
    values: dict[str, Any] = {}
    for name, value in zip(flat[::2], flat[1::2], strict=True):
        key = member_name(name)
        if key == "body" and isinstance(value, bytes):
            put_bytes(values, key, value)
        elif key == "progress":
            values[key] = float(value)
        elif isinstance(value, list):
            values[key] = [text(item) for item in value]
        else:
            values[key] = text(value) if isinstance(value, bytes) else value
    return values


def member_name(name: bytes) -> str:
    """The name of a value of the node as a member of JSON."""
    return name.decode().replace("-", "_")


def schema(**members: dict[str, Any]) -> dict[str, Any]:
    """The schema of an object."""
    return {"type": "object", "properties": members}


def array(items: dict[str, Any]) -> dict[str, Any]:
    """The schema of an array."""
    return {"type": "array", "items": items}


def nodes_value(reply: dict[bytes, Any]) -> dict[str, Any]:
    """Which nodes are counted."""
    return {"nodes": reply[b"nodes"], "nodes_missing": [text(i) for i in reply[b"nodes-missing"]]}


#: Which nodes are counted, in every answer.
NODES: Final = {"nodes": NUMBER, "nodes_missing": array(TEXT)}
