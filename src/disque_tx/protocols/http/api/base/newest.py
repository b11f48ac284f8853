"""The newest rows of a list that each node keeps, newest first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from disque_tx.protocols.http.server.asking import Asked, ask, scope_of
from disque_tx.protocols.http.server.exchange import Exchange
from disque_tx.protocols.http.server.slices import Share

#: Rows of one question.
_ROWS: Final = 100
#: A row costs as much as examining so many bytes.
_ROW_BYTES: Final = 512

Row = list[Any]


class Newest:
    """``rows``: by the node that keeps them. ``asked``: which nodes are in it."""

    def __init__(self) -> None:
        self.rows: dict[bytes, list[Row]] = {}
        self.asked = Asked()

    def each(self) -> Iterator[tuple[bytes, Row]]:
        """Every row, with its node."""
        for node, rows in self.rows.items():
            for row in rows:
                yield node, row


async def newest(exchange: Exchange, question: bytes, limit: int) -> Newest:
    """Up to ``limit`` rows of each node of the request's scope. ``question``: takes the number of
    the first row and how many."""
    found, share = Newest(), Share(exchange.slices)
    found.asked = await ask(exchange, scope_of(exchange), question, b"0", _count(limit))
    for node, rows in found.asked.answers.items():
        kept = found.rows[node] = list(rows)
        await share.spend(len(rows) * _ROW_BYTES)
        while len(rows) == _ROWS and len(kept) < limit:
            words = (question, b"%d" % len(kept), _count(limit - len(kept)))
            answer = await ask(exchange, node, *words)
            found.asked.miss(answer)
            rows = answer.answers.get(node, [])
            kept += rows
            await share.spend(len(rows) * _ROW_BYTES)
    return found


def _count(limit: int) -> bytes:
    return b"%d" % min(limit, _ROWS)
