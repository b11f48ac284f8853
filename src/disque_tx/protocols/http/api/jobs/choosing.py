"""Which dead letters a request is about, and when their jobs are to be queued again."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from typing import Any, Final

import attrs

from disque_tx.protocols.http.api.base.values import take_flag, text
from disque_tx.protocols.http.api.jobs.letters import Entry, find_letters, read_letters
from disque_tx.protocols.http.server.exchange import PATTERN_BYTES, Exchange, whole
from disque_tx.protocols.http.server.problems import bad_request
from disque_tx.protocols.http.server.slices import Share
from disque_tx.text.similar import similar
from disque_tx.worker.settling.deadletters import LETTERS_MAX

#: Ways to choose; a request uses one of them.
WAYS: Final = ("ids", "reason", "similar", "matching", "all")
_DELAY_S_MAX: Final = 366 * 86_400
_PER_MINUTE_MAX: Final = 1_000_000


def matches(entry: Entry, words: str) -> bool:
    """Whether a letter has this text, in any case of letters, in its reason, the ID of its job, its
    worker, or the body of the job, with the name and arguments of its task."""
    wanted = words.casefold()
    letter = entry.letter
    texts = [entry.reason] if letter is None else [entry.reason, letter.id, letter.worker]
    if any(wanted in one.casefold() for one in texts):
        return True
    # Arguments are mostly JSON, with other letters than those of ASCII escaped.
    forms = {wanted.encode("utf-8", "surrogateescape"), json.dumps(wanted)[1:-1].encode()}
    body = b"" if letter is None else letter.body.lower()
    return any(form in body for form in forms)


@attrs.frozen
class Choice:
    """``way``: one of :data:`WAYS`; ``value``: what it says. ``limit``: the oldest ones of them."""

    way: str
    value: Any
    limit: int

    def takes(self, entry: Entry) -> bool:
        """Whether a letter is one of those."""
        match self.way:
            case "all":
                return True
            case "ids":
                return bool(text(entry.letter_id) in self.value)
            case "matching":
                return matches(entry, self.value)
            case "similar":
                return bool(similar(entry.reason) == self.value)
            case _:
                return bool(entry.reason == self.value)

    def words(self) -> list[bytes]:
        """The choice, for the list of actions."""
        if self.way in ("all", "ids"):
            return [self.way.encode()]
        return [self.way.encode(), self.value.encode("utf-8", "backslashreplace")]


def choice_of(values: dict[str, Any]) -> Choice:
    """The choice in a body. Raises ``Problem`` if there is none, or more than one."""
    limit = whole("limit", values.get("limit", LETTERS_MAX), 1, LETTERS_MAX)
    given = [way for way in WAYS if values.get(way) is not None]
    if len(given) != 1:
        raise bad_request(f"Give exactly one of {', '.join(WAYS)}.")
    (way,) = given
    value = values[way]
    if way == "all" and value is not True:
        raise bad_request("all must be true.")
    if way == "ids":
        if not isinstance(value, list):
            raise bad_request("ids must be an array of strings.")
        value = {job_id for job_id in value if isinstance(job_id, str)}
    elif way != "all" and not isinstance(value, str):
        raise bad_request(f"{way} must be a string.")
    if way == "matching" and not 0 < len(value.encode("utf-8", "replace")) <= PATTERN_BYTES:
        raise bad_request(f"matching has 1 to {PATTERN_BYTES} bytes.")
    return Choice(way, value, limit)


async def chosen(exchange: Exchange, choice: Choice) -> AsyncIterator[Entry]:
    """The letters, oldest first."""
    left, share = choice.limit, Share(exchange.slices)
    found = await find_letters(exchange, left if choice.way == "all" else LETTERS_MAX)
    async for entry, size in read_letters(exchange, found, sys.maxsize):
        if choice.way == "matching":
            await share.spend(size)
        if choice.takes(entry):
            yield entry
            left -= 1
            if not left:
                return


@attrs.frozen
class When:
    """``delay_s``: before the first one. ``per_minute``: how many in a minute, 0 for all at once.
    ``first``: how many were placed by earlier requests of the same action."""

    delay_s: int = 0
    per_minute: int = 0
    first: int = 0

    def delay_of(self, number: int) -> int:
        """Seconds until this one of the request is queued, the first one being 0."""
        if not self.per_minute:
            return self.delay_s
        return self.delay_s + (self.first + number) * 60 // self.per_minute


def when_of(values: dict[str, Any]) -> When:
    """When jobs are to be queued, by a body: now if it says nothing."""
    return When(
        whole("delay_s", values.get("delay_s", 0), 0, _DELAY_S_MAX),
        whole("per_minute", values.get("per_minute", 0), 0, _PER_MINUTE_MAX),
        whole("first", values.get("first", 0), 0, LETTERS_MAX),
    )


def only_counts(values: dict[str, Any]) -> bool:
    """Whether a request is to say how many letters it is about, and to do nothing."""
    return take_flag(values, "dry_run")
