"""Jobs as lines: JSON for programs, and text without control characters for people."""

from __future__ import annotations

import json
from binascii import Error as BadBase64
from binascii import a2b_base64
from collections.abc import Callable
from typing import Any, Final, TypeAlias

import attrs

from disque_tx.cli.formatting import jsonable
from disque_tx.client.options import AddOptions, options_from_id
from disque_tx.client.values import Job, JobDetails
from disque_tx.errors import DisqueError
from disque_tx.messages.limits import REPLICATE_RANGE, RETRY_RANGE, TTL_RANGE
from disque_tx.text.quoting import quote

#: Makes a line of a job, and of what its node says of it, if that is known.
Line: TypeAlias = Callable[[Job, JobDetails | None], bytes]
#: Number in a line → the least and the most that it may be.
_NUMBERS: Final = {"retry": RETRY_RANGE, "ttl": TTL_RANGE, "replicate": REPLICATE_RANGE}


class NotAJob(DisqueError):
    """A line that is not a job; the text says what is wrong with it."""


@attrs.frozen
class JobLine:
    """The job in a line. ``id``: the one it had, empty if the line has none."""

    queue: str
    id: str
    body: bytes = attrs.field(repr=False)
    options: AddOptions


def as_json(job: Job, details: JobDetails | None = None) -> bytes:
    """An object with ``queue``, ``id`` and ``body``; a body that is not UTF-8 is
    ``{"base64": …}``. And what is known of the job: times in seconds, ``ttl`` what is left of
    it."""
    values: dict[str, Any] = {"queue": job.queue, "id": job.id, "body": jsonable(job.body)}
    if details is not None:
        values |= {
            "retry": details.retry_s,
            "ttl": details.ttl_s,
            "delay": details.delay_s,
            "replicate": details.replicate,
            "nacks": job.nacks,
            "additional_deliveries": job.additional_deliveries,
            "ctime": details.ctime,
        }
    return json.dumps(values, allow_nan=False).encode("ascii") + b"\n"


def as_body(job: Job, details: JobDetails | None = None) -> bytes:
    """The body unchanged, and a line end."""
    return job.body + b"\n"


def as_text(job: Job, details: JobDetails | None = None) -> bytes:
    """ID and body, quoted, in ASCII."""
    return job.id.encode() + b" " + quote(job.body) + b"\n"


def as_readable(job: Job, details: JobDetails | None = None) -> bytes:
    """The job as a line for a terminal: printable UTF-8 stays unchanged."""
    try:
        text = job.body.decode()
    except UnicodeDecodeError:
        return as_text(job)
    return f'{job.id} "{"".join(map(_harmless, text))}"\n'.encode()


def _harmless(character: str) -> str:
    if character.isprintable() and character not in '"\\':
        return character
    return quote(character.encode())[1:-1].decode()


def parsed(line: bytes) -> JobLine:
    """The job in a line of :func:`as_json`.

    A line of an older version has no RETRY; then the ID shows whether it is 0.

    :raises NotAJob: the line is not a job.
    """
    try:
        values = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise NotAJob(f"it is not JSON ({error})") from None
    if not isinstance(values, dict):
        raise NotAJob("it is not a JSON object")
    job_id = values.get("id", "")
    if not isinstance(job_id, str):
        raise NotAJob("id is not text")
    numbers = {name: _number(values, name) for name in _NUMBERS}
    has_options = "retry" in values or not job_id
    options = options_from_id(job_id)
    if has_options:
        options = AddOptions(
            retry_s=numbers["retry"], ttl_s=numbers["ttl"], replicate=numbers["replicate"]
        )
    return JobLine(_queue(values), job_id, _body(values), options)


def _queue(values: dict[str, Any]) -> str:
    queue = values.get("queue")
    if not isinstance(queue, str):
        raise NotAJob("queue is missing, or not text")
    try:
        queue.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise NotAJob("queue is not valid Unicode") from None
    return queue


def _body(values: dict[str, Any]) -> bytes:
    body = values.get("body")
    try:
        if isinstance(body, str):
            return body.encode()
        if isinstance(body, dict) and body.keys() == {"base64"}:
            return a2b_base64(body["base64"], strict_mode=True)
    except (UnicodeEncodeError, BadBase64, ValueError, TypeError) as error:
        raise NotAJob(f"body cannot be decoded ({error})") from None
    raise NotAJob('body is missing, or neither text nor {"base64": …}')


def _number(values: dict[str, Any], name: str) -> int | None:
    value = values.get(name)
    least, most = _NUMBERS[name]
    # What is left of a TTL may be less than a second.
    if name == "ttl" and value == 0:
        return least
    if value is None or (type(value) is int and least <= value <= most):
        return value
    raise NotAJob(f"{name} is not a whole number from {least} to {most}")
