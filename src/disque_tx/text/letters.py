"""Dead letters as JSON, version 2: nodes and workers write and read them alike.

    {"version": 2, "queue": …, "id": …, "body": Base64, "reason": …, "traceback": …, "worker": …,
     "nacks": n, "additional_deliveries": n, "failed_at_s": unix time,
     "history": [{"at_s": unix time, "reason": …}, …], "retry_s": n, "ttl_s": n, "replicate": n}

Bytes of names and texts that are not UTF-8 are kept as lone surrogates, as clients in Python do.
Letters of version 1 do not say what the job was added with: the last three members.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from typing import Any, Final

_VERSION: Final = 2
_READ: Final = (1, _VERSION)
#: The members behind the version, in their order.
NAMES: Final = (
    *("queue", "id", "body", "reason", "traceback", "worker", "nacks", "additional_deliveries"),
    *("failed_at_s", "history", "retry_s", "ttl_s", "replicate"),
)
#: Members without which it is not known what the letter is about.
_TEXTS: Final = ("queue", "id", "body")
#: How nodes and workers begin a letter.
START: Final = b'{"version":'
#: Where the body of the job stands in a letter, by far the longest part. In no text: quotes are
#: escaped there.
_BODY: Final = b'"body": "'
_QUOTE: Final = b'"'
_BACKSLASH: Final = b"\\"
#: Of a letter that is only looked at, without the body of the job.
_OUTLINE_BYTES_MAX: Final = 64 * 1024


def letter_bytes(values: Mapping[str, Any], body: bytes) -> bytes:
    """The letter with these members, and with this body of the job."""
    members: dict[str, Any] = {"version": _VERSION}
    for name in NAMES:
        members[name] = values.get(name)
    members["body"] = b64encode(body).decode("ascii")
    return json.dumps(members).encode("ascii")


def letter_history(history: Sequence[tuple[Any, str]]) -> list[dict[str, Any]]:
    """Earlier failures, each a time and a reason, as a letter lists them. A time stays the whole
    number that it may be, compiled as well: so it is not declared as a float."""
    return [{"at_s": at_s, "reason": reason} for at_s, reason in history]


def letter_members(letter: bytes) -> dict[str, Any]:
    """The members of a letter that anybody can have written. Queue and ID are text, the body is
    that of the job, and nothing is known of the others.

    :raises ValueError: the bytes do not hold a letter.
    """
    try:
        values = json.loads(letter)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(values, dict):
        raise ValueError("it is no object")
    if values.get("version") not in _READ:
        raise ValueError("it has another version")
    for name in _TEXTS:
        if not isinstance(values.get(name), str):
            raise ValueError(f"{name} is not text")
    values["body"] = b64decode(values["body"], validate=True)
    return values


def letter_outline(letter: bytes) -> bytes:
    """A letter without the body of the job in it; empty for any other bytes, and for one that is
    too long to be read by the way, even so."""
    if not letter.startswith(START):
        return b""
    start: int = letter.find(_BODY)
    if start >= 0:
        start += len(_BODY)
        end: int = letter.find(_QUOTE, start)
        if end > start and letter[end - 1 : end] != _BACKSLASH:
            if len(letter) - (end - start) > _OUTLINE_BYTES_MAX:
                return b""
            return letter[:start] + letter[end:]
    return letter if len(letter) <= _OUTLINE_BYTES_MAX else b""


def letter_reason(outline: bytes) -> bytes:
    """The reason in a letter, of which :func:`letter_outline` is left; empty if there is none."""
    if not outline:
        return b""
    try:
        values = json.loads(outline)
    except (ValueError, RecursionError):
        return b""
    reason = values.get("reason") if isinstance(values, dict) else None
    if not isinstance(reason, str):
        return b""
    try:
        return reason.encode("utf-8", "surrogateescape")
    except ValueError:  # surrogates that stand for no byte
        return reason.encode("utf-8", "surrogatepass")
