"""Dead letters: jobs that workers gave up on, by reason; requeueing and dropping them."""

from __future__ import annotations

from typing import Any, Final

import attrs

from disque_tx.errors import CommandError
from disque_tx.protocols.http.api.slices import pause
from disque_tx.protocols.http.api.values import NUMBER, ROOT, TEXT, array, schema, text, url
from disque_tx.protocols.http.exchange import Exchange, whole
from disque_tx.protocols.http.problems import bad_request
from disque_tx.protocols.http.routes import Route
from disque_tx.worker.deadletters import LETTERS_MAX, Letter, NotADeadLetter

#: Letters read or settled before the node serves others.
_PER_SLICE: Final = 50
#: Letters listed by reason, IDs and all.
_LISTED_MAX: Final = 100
_REASON_MAX: Final = 200
_ADD_TIMEOUT_MS: Final = 5_000


@attrs.frozen
class _Entry:
    """A job in the queue of dead letters. ``letter``: ``None`` when it cannot be read."""

    letter_id: bytes
    letter: Letter | None
    reason: str


async def _entries(exchange: Exchange, count: int = LETTERS_MAX) -> list[_Entry]:
    name = b"dead:" + exchange.path["queue"]
    peeked = await exchange.call(b"QPEEK", name, b"%d" % count)
    jobs = [(job_id, body) for _queue, job_id, body in peeked]
    if exchange.host.view.counts(name).loaded:
        jobs += await _loaded(exchange, name, count - len(jobs))
    entries = []
    for number, (job_id, body) in enumerate(jobs):
        if number % _PER_SLICE == _PER_SLICE - 1:
            await pause(exchange.host)
        try:
            letter = Letter.decoded(body)
            entries.append(_Entry(job_id, letter, letter.reason[:_REASON_MAX]))
        except NotADeadLetter as error:
            entries.append(_Entry(job_id, None, str(error)[:_REASON_MAX]))
    return entries


async def _loaded(exchange: Exchange, name: bytes, count: int) -> list[tuple[bytes, bytes]]:
    """Letters that came from the log, and are not queued again yet: ID and body of each."""
    found: dict[bytes, bytes] = {}
    cursor = b"0"
    while len(found) < count:
        words = (b"QUEUE", name, b"STATE", b"active", b"REPLY", b"all")
        cursor, jobs = await exchange.call(b"JSCAN", cursor, b"COUNT", b"100", *words)
        for job in jobs:
            fields = dict(zip(job[::2], job[1::2], strict=True))
            found[fields[b"id"]] = fields[b"body"]
        if cursor == b"0":
            break
        await pause(exchange.host)
    return list(found.items())[: max(0, count)]


async def list_letters(exchange: Exchange) -> dict[str, Any]:
    """The dead letters of a queue on this node, by reason."""
    groups: dict[str, list[_Entry]] = {}
    entries = await _entries(exchange)
    for entry in entries:
        groups.setdefault(entry.reason, []).append(entry)
    ordered = sorted(groups.items(), key=lambda group: (-len(group[1]), group[0]))
    return {
        "total": len(entries),
        "reasons": [
            {
                "reason": reason,
                "count": len(members),
                "letters": [_shown(entry) for entry in members[:_LISTED_MAX]],
            }
            for reason, members in ordered[:_LISTED_MAX]
        ],
    }


def _shown(entry: _Entry) -> dict[str, Any]:
    values: dict[str, Any] = {"id": text(entry.letter_id), "url": url("jobs", entry.letter_id)}
    if entry.letter is not None:
        values |= {
            "job_id": entry.letter.id,
            "worker": entry.letter.worker,
            "failed_at_s": entry.letter.failed_at_s,
        }
    return values


async def _chosen(exchange: Exchange) -> list[_Entry]:
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
    fitting = [
        entry
        for entry in await _entries(exchange, limit if everything else LETTERS_MAX)
        if everything or entry.reason == reason or text(entry.letter_id) in chosen
    ]
    return fitting[:limit]


async def requeue(exchange: Exchange) -> dict[str, Any]:
    """Add the jobs to their queues again, each before its letter is dropped: a crash in between
    leaves the letter."""
    done, failed = 0, []
    for number, entry in enumerate(await _chosen(exchange)):
        if number % _PER_SLICE == _PER_SLICE - 1:
            await pause(exchange.host)
        try:
            if entry.letter is None:
                raise CommandError("ERR", entry.reason)
            await exchange.call(*_words(entry.letter))
            await exchange.call(b"ACKJOB", entry.letter_id)
            done += 1
        except CommandError as error:
            failed.append({"id": text(entry.letter_id), "code": error.code, "detail": error.text})
    return {"count": done, "failed": failed[:_LISTED_MAX], "failed_count": len(failed)}


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
    ids = [entry.letter_id for entry in await _chosen(exchange)]
    for start in range(0, len(ids), _PER_SLICE):
        await exchange.call(b"ACKJOB", *ids[start : start + _PER_SLICE])
        await pause(exchange.host)
    return {"count": len(ids), "failed": [], "failed_count": 0}


def deadletter_routes() -> list[Route]:
    """All operations on dead letters."""
    letters = f"{ROOT}/queues/{{queue}}/dead-letters"
    choice = schema(ids=array(TEXT), reason=TEXT, all={"type": "boolean"}, limit=NUMBER)
    done = schema(count=NUMBER, failed=array({"type": "object"}), failed_count=NUMBER)
    reasons = array(schema(reason=TEXT, count=NUMBER, letters=array({"type": "object"})))
    return [
        Route(
            "GET", letters, list_letters, "Dead letters of the queue on this node, by reason",
            answer=schema(total=NUMBER, reasons=reasons),
        ),
        Route(
            "POST", f"{letters}/requeue", requeue, "Add dead jobs to their queues again",
            body=choice, answer=done,
        ),
        Route("POST", f"{letters}/drop", drop, "Delete dead letters", body=choice, answer=done),
    ]  # fmt: skip
