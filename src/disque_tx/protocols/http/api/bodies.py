"""Bodies of jobs in lists: whole while there is room in the answer, otherwise their beginning."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Final

from disque_tx.protocols.http.api.values import FLAG, NUMBER, TEXT, put_bytes, text, url
from disque_tx.protocols.http.exchange import Exchange
from disque_tx.protocols.http.slices import Share

#: Bytes of one body that a list shows, of all bodies that it shows whole, and of the others.
BODY_MAX: Final = 128 * 1024
BODIES_MAX: Final = 4 * 1024 * 1024
BEGINNING: Final = 1024
#: The members of a body.
SHOWN_BODY: Final = {
    "body": TEXT, "body_base64": TEXT, "body_truncated": FLAG, "body_bytes": NUMBER,
}  # fmt: skip


class Bodies:
    """The bodies in one answer."""

    def __init__(self) -> None:
        self._left = BODIES_MAX

    def most(self) -> int:
        """Bytes of the next body that may be shown."""
        return min(BODY_MAX, max(self._left, BEGINNING))

    def put(self, values: dict[str, Any], beginning: bytes, size: int) -> None:
        """Add a body of this size, or as much of it as there is room for. ``beginning``: of the
        body, at least as much as :meth:`most`, if it has so much."""
        if size > self.most():
            beginning = whole_characters(beginning[:BEGINNING])
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


async def queued_jobs(exchange: Exchange, count: int) -> AsyncIterator[dict[str, Any]]:
    """Jobs in the queue of the request; with a negative count the newest ones."""
    view, share, bodies = exchange.host.view, Share(exchange.slices), Bodies()
    queue = exchange.path["queue"]
    for job_id in view.queued(queue, count):
        known = view.body(job_id, 0)
        await share.spend(min(known[1], bodies.most()) if known is not None else 0)
        found = view.body(job_id, bodies.most())
        if found is not None:
            values = {"id": text(job_id), "queue": text(queue), "url": url("jobs", job_id)}
            bodies.put(values, *found)
            yield values
