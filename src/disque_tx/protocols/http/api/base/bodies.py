"""Bodies of jobs. In lists they are whole while there is room in the answer, otherwise cut."""

from __future__ import annotations

import json
from base64 import b64encode
from codecs import getincrementaldecoder
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from typing import Any, Final

from disque_tx.protocols.http.api.base.holders import Place, bodies
from disque_tx.protocols.http.api.base.values import (
    FLAG,
    NUMBER,
    TEXT,
    put_bytes,
    take_bytes,
    text,
    url,
)
from disque_tx.protocols.http.server.exchange import Exchange
from disque_tx.protocols.http.server.problems import bad_request
from disque_tx.protocols.http.server.slices import Share, Slices
from disque_tx.protocols.http.server.streaming import encoded

#: Bytes of one body that a list shows, of all bodies that it shows whole, and of the others.
BODY_MAX: Final = 128 * 1024
BODIES_MAX: Final = 4 * 1024 * 1024
BEGINNING: Final = 1024
#: Bytes of a body that are written at once.
PART_BYTES: Final = 3 * 16 * 1024
#: Bytes of Base64 that are decoded at once.
DECODED_BYTES: Final = 4 * 16 * 1024
#: The members of a body.
SHOWN_BODY: Final = {
    "body": TEXT, "body_base64": TEXT, "body_truncated": FLAG, "body_bytes": NUMBER,
}  # fmt: skip


class Bodies:
    """The bodies in one answer."""

    def __init__(self) -> None:
        self._left = BODIES_MAX

    def shown(self, size: int) -> int:
        """How many bytes are shown of the next body, which has ``size`` bytes."""
        return size if size <= min(BODY_MAX, max(self._left, BEGINNING)) else BEGINNING

    def put(self, values: dict[str, Any], beginning: bytes, size: int) -> None:
        """Add a body of this size, or as much of it as there is room for. ``beginning``: of the
        body, at least as much as is shown."""
        shown = self.shown(size)
        beginning = beginning[:shown]
        if shown < size:
            beginning = whole_characters(beginning)
            values["body_truncated"] = True
            values["body_bytes"] = size
        self._left -= len(beginning)
        put_bytes(values, "body", beginning)


def whole_characters(data: bytes) -> bytes:
    """Text that was cut, without the part of a character at its end; other bytes as they are."""
    try:
        data.decode()
    except UnicodeDecodeError as error:
        if error.end == len(data) and error.start > len(data) - 4:
            return data[: error.start]
    return data


async def queued_jobs(exchange: Exchange, places: list[Place]) -> AsyncIterator[dict[str, Any]]:
    """Describe these jobs of the requested queue, with the beginnings of their bodies."""
    shown, queue = Bodies(), exchange.path["queue"]
    async for body in bodies(exchange, places, BODY_MAX, BEGINNING):
        job_id = body.place.job_id
        values = {"id": text(job_id), "queue": text(queue), "url": url("jobs", job_id)}
        shown.put(values, body.beginning, body.size)
        yield values


async def take_body(values: dict[str, Any], slices: Slices) -> bytes:
    """The body of a new job, in ``body`` or ``body_base64``; a long one is decoded in slices."""
    encoded = values.get("body_base64")
    if not isinstance(encoded, bytes) or values.get("body") is not None:
        return take_bytes(values, "body")
    share, found = Share(slices), []
    for start in range(0, len(encoded), DECODED_BYTES):
        part = encoded[start : start + DECODED_BYTES]
        await share.spend(len(part))
        if b"=" in part and start + len(part) < len(encoded):
            raise bad_request("body_base64 is not valid: it ends before the end.")
        found.append(take_bytes({"part_base64": part}, "part"))
    return b"".join(found)


async def with_body(
    values: dict[str, Any], body: bytes, slices: Slices
) -> AsyncGenerator[bytes, None]:
    """An object in JSON with a body of any size, whole, as :func:`values.put_bytes` does it."""
    is_text = await _is_text(body, slices)
    yield encoded(values)[:-1] + (b',"body":"' if is_text else b',"body_base64":"')
    if is_text:
        decoder = getincrementaldecoder("utf-8")()
        for part in _parts(body):
            yield json.dumps(decoder.decode(part))[1:-1].encode()
    else:
        for part in _parts(body):
            yield b64encode(part)
    yield b'"}'


async def _is_text(body: bytes, slices: Slices) -> bool:
    decoder = getincrementaldecoder("utf-8")()
    share = Share(slices)
    try:
        for part in _parts(body):
            await share.spend(len(part))
            decoder.decode(part)
        decoder.decode(b"", True)
    except UnicodeDecodeError:
        return False
    return True


def _parts(body: bytes) -> Iterator[bytes]:
    """The body in parts, of whole groups of base64."""
    for start in range(0, len(body), PART_BYTES):
        yield body[start : start + PART_BYTES]
