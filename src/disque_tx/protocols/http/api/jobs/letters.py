"""The dead letters of a queue: in which queues they are, at which nodes, and what they say."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

import attrs

from disque_tx.plugins import QUEUE_BYTES_MAX
from disque_tx.protocols.http.api.base.holders import Place, bodies, holders, queued
from disque_tx.protocols.http.server.asking import Asked, ask, chosen_scope, several
from disque_tx.protocols.http.server.exchange import Exchange
from disque_tx.protocols.http.server.slices import Share
from disque_tx.worker.settling.deadletters import LETTERS_MAX, Letter, NotADeadLetter

REASON_MAX: Final = 200
#: Bytes of a letter that a list reads; longer ones are listed by this reason.
LETTER_BYTES_MAX: Final = 512 * 1024
TOO_LONG: Final = f"The letter has more than {LETTER_BYTES_MAX} bytes."
#: What the names of queues of dead letters begin with, where no policy names another; those too
#: long for a queue are cut.
_PREFIX: Final = b"dead:"
_SETTING: Final = b"dead-queue"
_QUEUE_MARK: Final = b"{queue}"
#: Reading a letter costs more than looking at so many bytes.
_READING: Final = 4


@attrs.frozen
class Entry:
    """A job in a queue of dead letters. ``letter``: ``None`` when it cannot be read. ``reason``: by
    which it is listed."""

    place: Place
    letter: Letter | None
    reason: str

    @property
    def letter_id(self) -> bytes:
        """The ID of the letter as a job."""
        return self.place.job_id


@attrs.frozen
class Found:
    """Letters, oldest first. ``own``: how many there are in the queue for letters of this queue
    alone. ``shared``: those in a queue that may have letters of other queues as well; ``behind``:
    how many more are in that. ``asked``: which nodes were."""

    places: list[Place]
    own: int
    shared: frozenset[Place]
    behind: int
    asked: Asked


async def find_letters(exchange: Exchange, count: int) -> Found:
    """At most ``count`` letters of this queue alone, and all that are looked at in a queue for the
    letters of several: those that are queued, then those that came from the log and are not queued
    again yet. Of several nodes each has a part of them."""
    own = (_PREFIX + exchange.path["queue"])[:QUEUE_BYTES_MAX]
    places, total, asked = await _in_queue(exchange, own, count)
    named = await _named(exchange)
    if named in (b"", own):
        return Found(places, total, frozenset(), 0, asked)
    others, more, asked = await _in_queue(exchange, named, LETTERS_MAX)
    return Found([*places, *others], total, frozenset(others), more - len(others), asked)


async def _named(exchange: Exchange) -> bytes:
    """The queue that the policy names for dead letters; empty where it names none."""
    queue = exchange.path["queue"]
    for name, value, _pattern in await exchange.call(b"QPOLICY", b"GET", queue):
        if name == _SETTING:
            return bytes(value).replace(_QUEUE_MARK, queue)[:QUEUE_BYTES_MAX]
    return b""


async def _in_queue(exchange: Exchange, name: bytes, count: int) -> tuple[list[Place], int, Asked]:
    """The jobs in a queue of dead letters, at most ``count``, and how many there are."""
    places, asked = await queued(exchange, name, count)
    found = {place.job_id: place for place in places}
    counts = await ask(exchange, chosen_scope(exchange), b"COUNTS", name)
    total = 0
    for node, ((in_queue, *_others, loaded),) in counts.answers.items():
        total += in_queue + loaded
        cursor = b"0" if loaded else b""
        while cursor and len(found) < count:
            rows = await ask(exchange, node, b"JOBS", cursor, b"100", name, b"active")
            cursor, ids = rows.answers.get(node, (b"0", []))
            for one in ids:
                found.setdefault(one.text, Place(node, one.text))
            if cursor == b"0":
                break
    return await _at_holders(exchange, list(found.values())[:count]), total, asked


async def _at_holders(exchange: Exchange, letters: list[Place]) -> list[Place]:
    """The dead letters, each at the node that holds it."""
    if not several(exchange):
        return letters
    known, _asked = await holders(exchange, [letter.job_id for letter in letters])
    return [
        Place(nodes[0], letter.job_id)
        for letter, nodes in zip(letters, known, strict=True)
        if nodes
    ]


async def read_letters(
    exchange: Exchange, found: Found, longest: int
) -> AsyncIterator[tuple[Entry, int]]:
    """Letters and their sizes, in this order; each is read when it is asked for, and not if it has
    more than ``longest`` bytes. In a queue for the letters of many queues, those that do not say
    that they are of this one are left out."""
    queue = exchange.path["queue"]
    share = Share(exchange.slices)
    async for body in bodies(exchange, found.places, longest, 0):
        await share.spend(_READING * len(body.beginning))
        entry = _entry(body.place, None if body.size > longest else body.beginning)
        if body.place not in found.shared or _is_of(entry, queue):
            yield entry, body.size


def _entry(place: Place, body: bytes | None) -> Entry:
    """``body``: ``None`` if it is too long to be read."""
    if body is None:
        return Entry(place, None, TOO_LONG)
    try:
        letter = Letter.decoded(body)
    except NotADeadLetter as error:
        return Entry(place, None, str(error)[:REASON_MAX])
    long = len(body) > LETTER_BYTES_MAX
    return Entry(place, letter, TOO_LONG if long else letter.reason[:REASON_MAX])


def _is_of(entry: Entry, queue: bytes) -> bool:
    letter = entry.letter
    return letter is not None and letter.queue.encode("utf-8", "surrogateescape") == queue
