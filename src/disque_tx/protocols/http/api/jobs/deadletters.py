"""Dead letters: jobs that workers gave up on, by reason; requeueing and dropping them."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any, Final

import attrs

from disque_tx.errors import CommandError
from disque_tx.protocols.http.api.base.holders import Place, at_one, bodies, holders, queued
from disque_tx.protocols.http.api.base.values import (
    FLAG,
    NODES,
    NUMBER,
    ROOT,
    TEXT,
    array,
    schema,
    text,
    url,
)
from disque_tx.protocols.http.server.asking import PROCESSES, Asked, ask, several
from disque_tx.protocols.http.server.exchange import NAME_BYTES, Exchange, Reply, whole
from disque_tx.protocols.http.server.problems import bad_request
from disque_tx.protocols.http.server.routes import Route
from disque_tx.protocols.http.server.slices import Share
from disque_tx.protocols.http.server.streaming import listing
from disque_tx.worker.settling.deadletters import LETTERS_MAX, Letter, NotADeadLetter

#: Letters listed by reason, IDs and all.
_LISTED_MAX: Final = 100
_REASON_MAX: Final = 200
_ADD_TIMEOUT_MS: Final = 5_000
#: What the names of queues of dead letters begin with; those too long for a queue are cut.
_PREFIX: Final = b"dead:"
#: Bytes of a body with the IDs of all letters.
LETTERS_BODY_BYTES: Final = 1024 * 1024
#: Bytes of a letter that a list reads, and of all letters; longer ones are listed by this reason.
LETTER_BYTES_MAX: Final = 512 * 1024
LISTED_BYTES_MAX: Final = 64 * 1024 * 1024
TOO_LONG: Final = f"The letter has more than {LETTER_BYTES_MAX} bytes."
#: Reading a letter costs more than looking at so many bytes.
_READING: Final = 4


@attrs.frozen
class _Entry:
    """A job in the queue of dead letters. ``letter``: ``None`` when it cannot be read. ``reason``:
    by which it is listed."""

    place: Place
    letter: Letter | None
    reason: str

    @property
    def letter_id(self) -> bytes:
        """The ID of the letter as a job."""
        return self.place.job_id


async def _entries(
    exchange: Exchange, letters: list[Place], longest: int
) -> AsyncIterator[tuple[_Entry, int]]:
    """Letters and their sizes, in this order; each is read when it is asked for, and not if it has
    more than ``longest`` bytes."""
    share = Share(exchange.slices)
    async for body in bodies(exchange, letters, longest, 0):
        await share.spend(_READING * len(body.beginning))
        long = body.size > longest
        yield (_long(body.place) if long else _entry(body.place, body.beginning)), body.size


async def _letters(exchange: Exchange, count: int) -> tuple[list[Place], Asked]:
    """Letters in their queue, oldest first, then those that came from the log and are not queued
    again yet. Of several processes each has a part of them."""
    name = (_PREFIX + exchange.path["queue"])[:NAME_BYTES]
    places, asked = await queued(exchange, name, count)
    found = {place.job_id: place for place in places}
    counts = await ask(exchange, PROCESSES, b"COUNTS", name)
    for node, ((*_others, loaded),) in counts.answers.items():
        cursor = b"0" if loaded else b""
        while cursor and len(found) < count:
            rows = await ask(exchange, node, b"JOBS", cursor, b"100", name, b"active")
            cursor, ids = rows.answers.get(node, (b"0", []))
            for one in ids:
                found.setdefault(one.text, Place(node, one.text))
            if cursor == b"0":
                break
    return await _at_holders(exchange, list(found.values())[:count]), asked


async def _at_holders(exchange: Exchange, letters: list[Place]) -> list[Place]:
    """The dead letters, each at the process that holds it."""
    if not several(exchange, PROCESSES):
        return letters
    known, _asked = await holders(exchange, [letter.job_id for letter in letters])
    return [
        Place(nodes[0], letter.job_id)
        for letter, nodes in zip(letters, known, strict=True)
        if nodes
    ]


def _long(place: Place) -> _Entry:
    return _Entry(place, None, TOO_LONG)


def _entry(place: Place, body: bytes) -> _Entry:
    try:
        letter = Letter.decoded(body)
    except NotADeadLetter as error:
        return _Entry(place, None, str(error)[:_REASON_MAX])
    long = len(body) > LETTER_BYTES_MAX
    return _Entry(place, letter, TOO_LONG if long else letter.reason[:_REASON_MAX])


async def list_letters(exchange: Exchange) -> Reply:
    """The dead letters of a queue, by reason. No bodies are kept meanwhile, and what
    lies behind too many bytes of letters is not looked at."""
    groups: dict[str, list[dict[str, Any]]] = {}
    counts: Counter[str] = Counter()
    left = LISTED_BYTES_MAX
    letters, asked = await _letters(exchange, LETTERS_MAX)
    async for entry, size in _entries(exchange, letters, LETTER_BYTES_MAX):
        if left <= 0:
            break
        left -= min(size, LETTER_BYTES_MAX)
        counts[entry.reason] += 1
        kept = groups.setdefault(entry.reason, [])
        if len(kept) < _LISTED_MAX:
            kept.append(_shown(entry))
    after = {"total": counts.total(), "truncated": left <= 0, **asked.sources()}
    return Reply(listing("reasons", _groups(groups, counts), after))


async def _groups(
    groups: dict[str, list[dict[str, Any]]], counts: Counter[str]
) -> AsyncIterator[dict[str, Any]]:
    ordered = sorted(groups, key=lambda reason: (-counts[reason], reason))
    for reason in ordered[:_LISTED_MAX]:
        yield {"reason": reason, "count": counts[reason], "letters": groups[reason]}


def _shown(entry: _Entry) -> dict[str, Any]:
    values: dict[str, Any] = {"id": text(entry.letter_id), "url": url("jobs", entry.letter_id)}
    if entry.letter is not None:
        values |= {
            "job_id": entry.letter.id[:_REASON_MAX],
            "worker": entry.letter.worker[:_REASON_MAX],
            "failed_at_s": entry.letter.failed_at_s,
        }
    return values


async def _chosen(exchange: Exchange) -> AsyncIterator[_Entry]:
    """The letters that the body chooses: by ``ids``, by ``reason``, or ``all``; the oldest
    ``limit`` of them."""
    values = exchange.json()
    limit = whole("limit", values.pop("limit", LETTERS_MAX), 1, LETTERS_MAX)
    if len(values) != 1:
        raise bad_request("Give exactly one of ids, reason and all.")
    ids, reason, everything = values.get("ids"), values.get("reason"), values.get("all")
    if everything is not None and everything is not True:
        raise bad_request("all must be true.")
    if reason is not None and not isinstance(reason, str):
        raise bad_request("reason must be a string.")
    if ids is not None and not isinstance(ids, list):
        raise bad_request("ids must be an array of strings.")
    chosen = {job_id for job_id in ids or () if isinstance(job_id, str)}
    count = limit if everything else LETTERS_MAX
    letters, _asked = await _letters(exchange, count)
    async for entry, _size in _entries(exchange, letters, sys.maxsize):
        if everything or entry.reason == reason or text(entry.letter_id) in chosen:
            yield entry
            limit -= 1
            if not limit:
                return


async def requeue(exchange: Exchange) -> dict[str, Any]:
    """Add the jobs to their queues again, each before its letter is dropped: a crash in between
    leaves the letter."""
    done, failed, failed_count = 0, [], 0
    async for entry in _chosen(exchange):
        try:
            if entry.letter is None:
                raise CommandError("ERR", entry.reason)
            await exchange.call(*_words(entry.letter))
            await at_one(exchange, entry.place.node, b"ACKJOB", entry.letter_id)
            done += 1
        except CommandError as error:
            failed_count += 1
            if failed_count <= _LISTED_MAX:
                what = {"code": error.code, "detail": error.text}
                failed.append({"id": text(entry.letter_id), **what})
    return {"count": done, "failed": failed, "failed_count": failed_count}


def _words(letter: Letter) -> list[bytes]:
    options = letter.add_options
    words = [b"ADDJOB", letter.queue.encode("utf-8", "surrogateescape"), letter.body]
    words.append(b"%d" % _ADD_TIMEOUT_MS)
    for name, value in (
        (b"RETRY", options.retry_s), (b"TTL", options.ttl_s), (b"REPLICATE", options.replicate),
    ):  # fmt: skip
        if value is not None:
            words += [name, b"%d" % value]
    return words


async def drop(exchange: Exchange) -> dict[str, Any]:
    """Acknowledge the letters, which deletes them."""
    count = 0
    async for entry in _chosen(exchange):
        await at_one(exchange, entry.place.node, b"ACKJOB", entry.letter_id)
        count += 1
    return {"count": count, "failed": [], "failed_count": 0}


def deadletter_routes() -> list[Route]:
    """All operations on dead letters."""
    letters = f"{ROOT}/queues/{{queue}}/dead-letters"
    choice = schema(ids=array(TEXT), reason=TEXT, all={"type": "boolean"}, limit=NUMBER)
    done = schema(count=NUMBER, failed=array({"type": "object"}), failed_count=NUMBER)
    reasons = array(schema(reason=TEXT, count=NUMBER, letters=array({"type": "object"})))
    return [
        Route(
            "GET", letters, list_letters, "Dead letters of the queue, by reason",
            answer=schema(total=NUMBER, truncated=FLAG, reasons=reasons, **NODES),
        ),
        Route(
            "POST", f"{letters}/requeue", requeue, "Add dead jobs to their queues again",
            body=choice, body_max=LETTERS_BODY_BYTES, answer=done,
        ),
        Route(
            "POST", f"{letters}/drop", drop, "Delete dead letters", body=choice,
            body_max=LETTERS_BODY_BYTES, answer=done,
        ),
    ]  # fmt: skip
