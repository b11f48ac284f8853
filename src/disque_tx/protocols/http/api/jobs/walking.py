"""Walks over the jobs of several nodes, of one node after the other; a job that several of them
know is met once, as the one knows it that has to do with it."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import Any, Final

from disque_tx.protocols.http.api.base.bodies import BEGINNING, BODY_MAX, Bodies
from disque_tx.protocols.http.api.base.holders import Place, bodies, holders
from disque_tx.protocols.http.api.base.values import pairs, url
from disque_tx.protocols.http.server.asking import (
    CLUSTER,
    Asked,
    ask,
    chosen_scope,
    process_numbers,
    several,
    source,
)
from disque_tx.protocols.http.server.exchange import Exchange
from disque_tx.protocols.http.server.problems import bad_request
from disque_tx.protocols.http.server.slices import Share

#: Of one node: its place, and where its walk goes on.
_CURSOR: Final = re.compile(r"(?:([0-9]{1,3})\.)?([0-9]{1,20})")


async def nodes_in_order(exchange: Exchange) -> tuple[list[bytes], Asked]:
    """The nodes, in order; one that is away now has a place, too."""
    scope = chosen_scope(exchange)
    asked = await ask(exchange, scope, b"LATENCY")
    if scope == CLUSTER:
        return sorted({*asked.answers, *asked.missing}), asked
    numbers = process_numbers(exchange)
    if not numbers:
        return list(asked.answers), asked
    return sorted(numbers, key=lambda node: numbers[node]), asked


def start_of(word: str, count: int) -> tuple[int, bytes]:
    """The place of the node whose walk goes on, and its cursor."""
    match = _CURSOR.fullmatch(word)
    number = int(match[1] or 0) if match else count
    if match is None or number >= count or int(match[2]) >= 1 << 64:
        raise bad_request("cursor must be 0, or that of another answer.")
    return number, match[2].encode()


async def met(
    exchange: Exchange, nodes: list[bytes], number: int, ids: list[bytes], sources: Asked
) -> list[bytes]:
    """Of the jobs that a node has found, those that have to do with this one of the nodes."""
    if len(nodes) == 1:
        return ids
    known, asked = await holders(exchange, ids)
    sources.miss(asked)
    return [job_id for job_id, at in zip(ids, known, strict=True) if at[:1] == [nodes[number]]]


def next_of(number: int, after: bytes, count: int) -> bytes:
    """The cursor of all nodes behind that of one."""
    if count == 1:
        return after
    if after == b"0":
        number += 1
    return b"0" if number == count else b"%d.%s" % (number, after)


async def shown(exchange: Exchange, node: bytes, ids: list[bytes]) -> AsyncIterator[dict[str, Any]]:
    """Jobs with these IDs that still exist, with their bodies cut. A limited number is asked for at
    once, because the bodies may be long."""
    share, kept = Share(exchange.slices), Bodies()
    of = source(exchange, node) if several(exchange) else {}
    places = [Place(node, job_id) for job_id in ids]
    async for body in bodies(exchange, places, BODY_MAX, BEGINNING):
        job_id = body.place.job_id
        await share.spend(0)
        answers = (await ask(exchange, node, b"OUTLINE", job_id)).answers
        found = next(iter(answers.values()), None)
        if found is None:
            continue
        values = pairs(found)
        kept.put(values, body.beginning, body.size)
        yield {**values, **of, "url": url("jobs", job_id)}
