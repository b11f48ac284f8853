"""Jobs of several nodes, which are the processes of this daemon where nothing else is asked for:
which node has a job in flight or in its queue, and those that have copies of it only. A job is
shown once, and acted on where it is."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Any, Final

import attrs

from disque_tx.protocols.http.server.asking import Asked, ask, chosen_scope, several
from disque_tx.protocols.http.server.exchange import Exchange
from disque_tx.protocols.http.server.problems import Problem
from disque_tx.protocols.http.server.slices import Share

#: The answer to HOLDS of a node that does not know the job.
_UNKNOWN: Final = 0
#: IDs of one question, and bodies that are in memory at the same time, by number and by bytes.
_IDS: Final = 500
_BODIES: Final = 16
_BODIES_BYTES: Final = 4 * 1024 * 1024


@attrs.frozen
class Place:
    """A job, and the node that it is asked for."""

    node: bytes
    job_id: bytes


@attrs.frozen
class Body:
    """A body, or the beginning of it. ``size``: how many bytes it has."""

    place: Place
    size: int
    beginning: bytes


async def holders(exchange: Exchange, ids: list[bytes]) -> tuple[list[list[bytes]], Asked]:
    """:func:`known_by` for the nodes that the request is about."""
    return await known_by(exchange, chosen_scope(exchange), ids)


async def known_by(
    exchange: Exchange, scope: bytes, ids: list[bytes]
) -> tuple[list[list[bytes]], Asked]:
    """For each job the nodes that know it, those first that have to do with it; and which nodes
    were asked."""
    found: list[list[bytes]] = []
    asked = Asked()
    for start in range(0, len(ids), _IDS):
        some = await ask(exchange, scope, b"HOLDS", *ids[start : start + _IDS])
        asked.answers = some.answers
        asked.miss(some)
        nodes = list(some.answers)
        for ranks in zip(*some.answers.values(), strict=True):
            known = [(-rank, place) for place, rank in enumerate(ranks) if rank != _UNKNOWN]
            found.append([nodes[place] for _, place in sorted(known)])
    return found, asked


async def at_one(exchange: Exchange, node: bytes, *words: bytes) -> Any:
    """What one node answers. Raises ``Problem`` if it does not in time."""
    asked = await ask(exchange, node, *words)
    if node not in asked.answers:
        raise Problem(
            503, "TRYLATER",
            "The node that has the job did not answer within a second; what was asked of it may"
            " have been done.",
        )  # fmt: skip
    return asked.answers[node]


async def act(
    exchange: Exchange,
    command: bytes,
    options: list[bytes],
    ids: list[bytes],
    behind: Sequence[bytes] = (),
) -> Any:
    """Run a command on jobs: each at the node that has to do with it; DELJOB at all that know
    it. Jobs that no node knows are left to this one. ``behind``: words behind the IDs. Returns the
    reply, or the sum of counts."""
    if not several(exchange) or not ids:
        return await exchange.call(command, *options, *ids, *behind)
    found, _asked = await holders(exchange, ids)
    unknown = [job_id for job_id, nodes in zip(ids, found, strict=True) if not nodes]
    wanted: dict[bytes, list[bytes]] = {}
    for job_id, nodes in zip(ids, found, strict=True):
        for node in nodes if command == b"DELJOB" else nodes[:1]:
            wanted.setdefault(node, []).append(job_id)
    counts = [
        await at_one(exchange, node, command, *options, *some, *behind)
        for node, some in wanted.items()
    ]
    if unknown:
        counts.append(await exchange.call(command, *options, *unknown, *behind))
    if command == b"DELJOB":
        return len({*ids} - {*unknown})
    return sum(counts)


async def queued(exchange: Exchange, name: bytes, count: int) -> tuple[list[Place], Asked]:
    """Jobs in a queue, of all nodes, in its order; with a negative count the newest ones."""
    end = b"oldest" if count > 0 else b"newest"
    scope = chosen_scope(exchange)
    asked = await ask(exchange, scope, b"QUEUED", name, end, b"%d" % abs(count))
    rows: list[tuple[int, int, bytes, bytes]] = []
    share = Share(exchange.slices)
    for node, keys in asked.answers.items():
        for key in keys:
            priority, ctime, job_id = key.split(b":", 2)
            rows.append((int(priority), int(ctime), job_id, node))
        await share.spend(len(keys) * 50)
    rows.sort(reverse=count < 0)
    places: dict[bytes, Place] = {}
    for _priority, _ctime, job_id, node in rows:
        places.setdefault(job_id, Place(node, job_id))
    return list(places.values())[: abs(count)], asked


async def bodies(
    exchange: Exchange, places: Iterable[Place], longest: int, beginning: int
) -> AsyncIterator[Body]:
    """The bodies of jobs, in this order, some at a time; of those longer than ``longest`` the first
    ``beginning`` bytes. Jobs that are gone are left out."""
    share = Share(exchange.slices)
    window = max(1, min(_BODIES, _BODIES_BYTES // max(1, longest)))
    ordered = list(places)
    for start in range(0, len(ordered), window):
        some = ordered[start : start + window]
        found: dict[Place, Body] = {}
        for node in dict.fromkeys(place.node for place in some):
            left = [place for place in some if place.node == node]
            while left:
                ids = [place.job_id for place in left]
                words = (b"BODIES", b"%d" % longest, b"%d" % beginning, *ids)
                rows = (await ask(exchange, node, *words)).answers.get(node, [])
                for place, row in zip(left, rows, strict=False):
                    if row is not None:
                        found[place] = Body(place, *row)
                await share.spend(sum(len(row[1]) for row in rows if row is not None))
                left = left[len(rows) :] if rows else []
        for place in some:
            if place in found:
                yield found[place]
