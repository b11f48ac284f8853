"""Dead letters: jobs that workers gave up on, by reason; requeueing and dropping them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Final

import attrs

from disque_tx.errors import CommandError
from disque_tx.protocols.http.api.base.holders import Place, at_one
from disque_tx.protocols.http.api.base.values import (
    FLAG,
    NODES,
    NUMBER,
    ROOT,
    TEXT,
    array,
    pairs,
    schema,
    take_bytes,
    text,
    url,
)
from disque_tx.protocols.http.api.jobs.choosing import (
    Choice,
    choice_of,
    chosen,
    matches,
    only_counts,
    when_of,
)
from disque_tx.protocols.http.api.jobs.letters import (
    LETTER_BYTES_MAX,
    REASON_MAX,
    Entry,
    find_letters,
    read_letters,
)
from disque_tx.protocols.http.server.asking import SCOPE
from disque_tx.protocols.http.server.exchange import Exchange, Parameter, Reply
from disque_tx.protocols.http.server.problems import bad_request
from disque_tx.protocols.http.server.routes import Route
from disque_tx.protocols.http.server.slices import Share
from disque_tx.protocols.http.server.streaming import listing
from disque_tx.text.similar import similar
from disque_tx.worker.settling.deadletters import LETTERS_MAX, Letter
from disque_tx.worker.settling.requeueing import LetterTaken

#: Groups of letters that are listed, and letters of each, IDs and all.
_LISTED_MAX: Final = 100
_ADD_TIMEOUT_MS: Final = 5_000
#: Bytes of a body with the IDs of all letters.
LETTERS_BODY_BYTES: Final = 1024 * 1024
#: Bytes of all letters that a list reads.
LISTED_BYTES_MAX: Final = 64 * 1024 * 1024
_GROUPINGS: Final = ("reason", "similar")
_BY: Final = Parameter(
    "by",
    "What makes letters one group: the whole reason, or the reason without numbers, identifiers and"
    " addresses",
    default="reason",
    choices=_GROUPINGS,
)

_MATCHING: Final = Parameter(
    "matching", "Only letters with this text in their reason, job ID, worker, or the job's body"
)


class _Group:
    """Letters that are listed together. ``reasons``: at most two of their reasons."""

    def __init__(self) -> None:
        self.count = 0
        self.reasons: set[str] = set()
        self.letters: list[dict[str, Any]] = []

    def add(self, entry: Entry) -> None:
        """Count a letter, and show it if it is one of the first."""
        self.count += 1
        if len(self.reasons) < 2:
            self.reasons.add(entry.reason)
        if len(self.letters) < _LISTED_MAX:
            self.letters.append(_shown(entry))


async def list_letters(exchange: Exchange) -> Reply:
    """The dead letters of a queue, in groups. No bodies are kept meanwhile, and what lies behind
    too many bytes of letters is not looked at."""
    groups: dict[str, _Group] = {}
    left, read, total, matched = LISTED_BYTES_MAX, 0, 0, 0
    matching = exchange.word(_MATCHING.name) or ""
    share = Share(exchange.slices)
    by_similar = exchange.word(_BY.name) == "similar"
    found = await find_letters(exchange, LETTERS_MAX)
    async for entry, size in read_letters(exchange, found, LETTER_BYTES_MAX):
        if left <= 0:
            break
        left -= min(size, LETTER_BYTES_MAX)
        read += 1
        total += entry.place in found.shared
        if matching:
            await share.spend(size)
            if not matches(entry, matching):
                continue
        matched += 1
        key = similar(entry.reason) if by_similar else entry.reason
        groups.setdefault(key, _Group()).add(entry)
    # Of a queue for the letters of several queues only reading shows which are of this one.
    total = max(read, total + found.own)
    after = {
        "total": total,
        "read": read,
        "matched": matched,
        "groups": len(groups),
        "truncated": left <= 0 or read < total or found.behind > 0,
        **found.asked.sources(),
    }
    return Reply(listing("reasons", _groups(groups, by_similar), after))


async def _groups(groups: dict[str, _Group], by_similar: bool) -> AsyncIterator[dict[str, Any]]:
    ordered = sorted(groups, key=lambda key: (-groups[key].count, key))
    for key in ordered[:_LISTED_MAX]:
        group = groups[key]
        # What all of them have in common is shown as it was written.
        reason = next(iter(group.reasons)) if len(group.reasons) == 1 else key
        values = {"reason": reason, "count": group.count, "letters": group.letters}
        yield {**values, "similar": key} if by_similar else values


def _shown(entry: Entry) -> dict[str, Any]:
    values: dict[str, Any] = {"id": text(entry.letter_id), "url": url("jobs", entry.letter_id)}
    if entry.letter is not None:
        values |= {
            "job_id": entry.letter.id[:REASON_MAX],
            "worker": entry.letter.worker[:REASON_MAX],
            "failed_at_s": entry.letter.failed_at_s,
        }
    return values


async def _count(exchange: Exchange, choice: Choice) -> dict[str, Any]:
    """How many letters a choice is about."""
    count = 0
    async for _entry in chosen(exchange, choice):
        count += 1
    return {"count": count, "failed": [], "failed_count": 0}


async def requeue(exchange: Exchange) -> dict[str, Any]:
    """Add the jobs to their queues again, each before its letter is dropped: a crash in between
    leaves the letter. Before that each letter is taken out of its queue, which only one of several
    requests at the same time can do, so that no job is added twice."""
    values = exchange.json()
    choice, when, body = choice_of(values), when_of(values), _edited(values)
    if only_counts(values):
        return await _count(exchange, choice)
    done, failed, failed_count = 0, [], 0
    async for entry in chosen(exchange, choice):
        try:
            if entry.letter is None:
                raise CommandError("ERR", entry.reason)
            letter = entry.letter if body is None else attrs.evolve(entry.letter, body=body)
            await _take(exchange, entry.place)
            try:
                await exchange.call(*_words(letter, when.delay_of(done)))
            except CommandError:
                await at_one(exchange, entry.place.node, b"ENQUEUE", entry.letter_id)
                raise
            await at_one(exchange, entry.place.node, b"ACKJOB", entry.letter_id)
            done += 1
        except CommandError as error:
            failed_count += 1
            if failed_count <= _LISTED_MAX:
                what = {"code": error.code, "detail": error.text}
                failed.append({"id": text(entry.letter_id), **what})
    _keep(exchange, b"REQUEUE", choice, done)
    return {"count": done, "failed": failed, "failed_count": failed_count}


async def _take(exchange: Exchange, place: Place) -> None:
    """Take a letter out of its queue. One that came from the log is queued before that. Raises
    ``CommandError`` if it is neither."""
    if not await at_one(exchange, place.node, b"DEQUEUE", place.job_id):
        if await _is_loaded(exchange, place):
            await at_one(exchange, place.node, b"ENQUEUE", place.job_id)
            if await at_one(exchange, place.node, b"DEQUEUE", place.job_id):
                return
        raise CommandError("NOJOB", str(LetterTaken()))


async def _is_loaded(exchange: Exchange, place: Place) -> bool:
    row = await at_one(exchange, place.node, b"OUTLINE", place.job_id)
    return row is not None and pairs(row).get("place") == "loaded"


def _edited(values: dict[str, Any]) -> bytes | None:
    """The body that a job gets instead of its own; ``None`` for its own."""
    if values.get("body") is None and values.get("body_base64") is None:
        return None
    if not isinstance(values.get("ids"), list) or len(values["ids"]) != 1:
        raise bad_request("A body can be given for one letter only, by its ID.")
    return take_bytes(values, "body")


def _words(letter: Letter, delay_s: int) -> list[bytes]:
    options = letter.add_options
    words = [b"ADDJOB", letter.queue.encode("utf-8", "surrogateescape"), letter.body]
    words.append(b"%d" % _ADD_TIMEOUT_MS)
    for name, value in (
        (b"RETRY", options.retry_s), (b"TTL", options.ttl_s), (b"REPLICATE", options.replicate),
        (b"DELAY", delay_s or None),
    ):  # fmt: skip
        if value is not None:
            words += [name, b"%d" % value]
    return words


def _keep(exchange: Exchange, verb: bytes, choice: Choice, count: int) -> None:
    """Keep what was done among the actions."""
    if count:
        exchange.connection.acted(count, verb, exchange.path["queue"], *choice.words())


async def drop(exchange: Exchange) -> dict[str, Any]:
    """Acknowledge the letters, which deletes them."""
    values, count = exchange.json(), 0
    choice = choice_of(values)
    if only_counts(values):
        return await _count(exchange, choice)
    async for entry in chosen(exchange, choice):
        await at_one(exchange, entry.place.node, b"ACKJOB", entry.letter_id)
        count += 1
    _keep(exchange, b"DROP", choice, count)
    return {"count": count, "failed": [], "failed_count": 0}


def deadletter_routes() -> list[Route]:
    """All operations on dead letters."""
    letters = f"{ROOT}/queues/{{queue}}/dead-letters"
    choice = {
        "ids": array(TEXT), "reason": TEXT, "similar": TEXT, "matching": TEXT, "all": FLAG,
        "limit": NUMBER, "dry_run": FLAG,
    }  # fmt: skip
    when = {**dict.fromkeys(("delay_s", "per_minute", "first"), NUMBER), "body": TEXT}
    when["body_base64"] = TEXT
    done = schema(count=NUMBER, failed=array({"type": "object"}), failed_count=NUMBER)
    reasons = array(
        schema(reason=TEXT, similar=TEXT, count=NUMBER, letters=array({"type": "object"}))
    )
    figures = {
        "total": NUMBER,
        "read": NUMBER,
        "matched": NUMBER,
        "groups": NUMBER,
        "truncated": FLAG,
    }
    return [
        Route(
            "GET", letters, list_letters, "Dead letters of the queue, by reason",
            (_BY, _MATCHING, SCOPE),
            answer=schema(**figures, reasons=reasons, **NODES),
        ),
        Route(
            "POST", f"{letters}/requeue", requeue, "Add dead jobs to their queues again", (SCOPE,),
            body=schema(**choice, **when), body_max=LETTERS_BODY_BYTES, answer=done,
        ),
        Route(
            "POST", f"{letters}/drop", drop, "Delete dead letters", (SCOPE,),
            body=schema(**choice), body_max=LETTERS_BODY_BYTES, answer=done,
        ),
    ]  # fmt: skip
