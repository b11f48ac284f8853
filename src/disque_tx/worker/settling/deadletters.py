"""Dead letters: jobs that could not be done, with the reason, as jobs of another queue.

:class:`DeadLetters` reads them without fetching them, from every node, because each node has only
its own part of a queue. Letters about the same job are one entry: a worker that ended between
writing a letter and acknowledging the job causes a second one.
"""

from __future__ import annotations

import math
import re
from base64 import b64encode
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Any, Final

import attrs

from disque_tx.client import ClientError, Refused
from disque_tx.client.blocking import Disque
from disque_tx.client.options import AddOptions, options_from_id
from disque_tx.messages.limits import U32_MAX
from disque_tx.text.letters import NAMES, letter_bytes, letter_history, letter_members
from disque_tx.worker.base.errors import WorkerError
from disque_tx.worker.settling.requeueing import Requeueing

_NAMES: Final = ("queue", "id")
_TEXTS: Final = ("reason", "traceback", "worker")
_COUNTS: Final = ("nacks", "additional_deliveries")
_TERMS: Final = ("retry_s", "ttl_s", "replicate")
#: The end of the year 9999, the last that calendars know.
_TIME_S_MAX: Final = 253_402_300_799
#: Halves of surrogate pairs that stand for no byte: such text cannot be encoded at all.
_NO_TEXT: Final = re.compile("[\ud800-\udc7f\udd00-\udfff]")


class NotADeadLetter(WorkerError):
    """A job in a queue of dead letters that is not a dead letter."""


@attrs.frozen
class Letter:
    """A job that could not be done.

    ``queue``, ``id``, ``body``: of the job. ``traceback``: the end of it. ``worker``: who wrote the
    letter, at ``failed_at_s`` seconds since the epoch. ``nacks``, ``additional_deliveries``: of the
    last delivery. ``history``: earlier failures that this worker saw: seconds since the epoch, and
    reason. ``retry_s``, ``ttl_s``, ``replicate``: what the job was added with, ``None`` where that
    is not known.
    """

    queue: str
    id: str
    body: bytes = attrs.field(repr=False)
    reason: str
    traceback: str
    worker: str
    nacks: int
    additional_deliveries: int
    failed_at_s: float
    history: tuple[tuple[float, str], ...] = ()
    retry_s: int | None = None
    ttl_s: int | None = None
    replicate: int | None = None

    @property
    def add_options(self) -> AddOptions:
        """The options to add the job with again. What the letter does not contain comes from the
        job's ID, as far as possible: a job with RETRY 0 keeps it."""
        from_id = options_from_id(self.id)
        if self.retry_s is None:
            return attrs.evolve(from_id, replicate=from_id.replicate or self.replicate)
        ttl_s = self.ttl_s or from_id.ttl_s
        return AddOptions(retry_s=self.retry_s, ttl_s=ttl_s, replicate=self.replicate)

    def encoded(self) -> bytes:
        """The body of the dead letter, JSON."""
        values = attrs.asdict(self, recurse=False)
        values["history"] = letter_history(self.history)
        return letter_bytes(values, self.body)

    @classmethod
    def decoded(cls, body: bytes) -> Letter:
        """The letter in this body, which anybody may have written: names can be encoded, and
        numbers are finite and bounded.

        :raises NotADeadLetter: it is not a letter.
        """
        try:
            values = letter_members(body)
            values["history"] = tuple(
                (_time("at_s", entry["at_s"]), _text("reason", entry["reason"]))
                for entry in values["history"]
            )
            _check(values)
            # Others come from a later version.
            return cls(**{name: values[name] for name in NAMES if name in values})
        except (ValueError, TypeError, KeyError) as error:
            raise NotADeadLetter(f"This is not a dead letter: {error}.") from None

    def table(self) -> dict[str, Any]:
        """The letter as a table to print, or as JSON; the body is text if it is UTF-8."""
        values = attrs.asdict(self, recurse=False)
        values["history"] = letter_history(self.history)
        try:
            values["body"] = self.body.decode()
        except UnicodeDecodeError:
            del values["body"]
            values["body_base64"] = b64encode(self.body).decode()
        return values


def _check(values: dict[str, Any]) -> None:
    """Raise ``ValueError`` for values that no letter has; texts for people are made readable."""
    for name in _NAMES:
        if _text(name, values[name]) != values[name]:
            raise ValueError(f"{name} cannot be encoded")
    for name in _TEXTS:
        values[name] = _text(name, values[name])
    for name in _COUNTS:
        _check_whole(name, values[name])
    values["failed_at_s"] = _time("failed_at_s", values["failed_at_s"])
    for name in _TERMS:
        if values.get(name) is not None:
            _check_whole(name, values[name])


def _text(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{name} is not text")
    return _NO_TEXT.sub("\ufffd", value)


def _time(name: str, value: object) -> float:
    """Seconds since the epoch, as they were written."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{name} is not a number")
    if not (math.isfinite(value) and 0 <= value <= _TIME_S_MAX):
        raise ValueError(f"{name} is not a time")
    return value


def _check_whole(name: str, value: object) -> None:
    if type(value) is not int or not 0 <= value <= U32_MAX:
        raise ValueError(f"{name} is not a whole number")


#: The setting of policies that names the queue for dead letters, and what stands in it for the
#: queue of the job.
_SETTING: Final = "dead-queue"
_QUEUE_MARK: Final = "{queue}"
#: Per node and queue.
LETTERS_MAX: Final = 10_000
_Opener = Callable[[str], AbstractContextManager[Disque]]


@attrs.frozen
class DeadJob:
    """A dead job. ``id``: of the job, or of the letter when that cannot be read. ``dead_queue``:
    where its letters lie. ``letters``: IDs of the letters, and the address of the node that each is
    queued at. ``letter``: ``None`` when it cannot be read; then ``trouble`` says why. ``loaded``:
    letters that are not queued yet since they came from the log."""

    id: str
    dead_queue: str
    letters: dict[str, str]
    letter: Letter | None
    trouble: str = ""
    loaded: frozenset[str] = frozenset()


class DeadLetters:
    """The dead letters on all nodes of a cluster. ``client``: of the cluster. ``opened``: makes a
    client of one node from its address. ``unseen``: the addresses of nodes that could not be
    asked."""

    def __init__(self, client: Disque, opened: _Opener) -> None:
        self._client = client
        self._opened = opened
        self.unseen: list[str] = []
        # How many letters this object has acted on that lay at each node, by its address.
        self._done: Counter[str] = Counter()

    def entries(self, queue: str | None, prefix: str) -> list[DeadJob]:
        """The dead jobs in a queue of letters, and those of its jobs in the queue that their policy
        names; with ``None`` those in all queues whose names begin with ``prefix``, or that policies
        name."""
        found: dict[tuple[str, str], DeadJob] = {}
        for node in self._nodes():
            if queue is None:
                named = _policy_places(node)
                wanted = _pattern(prefix, named)
                names = {name for name in node.queue_scan() if wanted.fullmatch(name)}
                names |= _loaded_queues(node, prefix, False)
                names |= {name for name in named if _QUEUE_MARK not in name}
            else:
                names = {queue} | _policy_place(node, queue.removeprefix(prefix))
            for name in sorted(names):
                of = "" if queue in (None, name) else str(queue).removeprefix(prefix)
                self._collect(found, node, name, of)
        return list(found.values())

    def _collect(
        self, found: dict[tuple[str, str], DeadJob], node: Disque, name: str, of: str
    ) -> None:
        """Add the letters in a queue; ``of``: only those that say that they are of this one."""
        rows = [(job.id, job.body, False) for job in node.queue_peek(name, LETTERS_MAX)]
        if _loaded_queues(node, name, True):
            rows += [
                (job.id, job.body, True)
                for job in node.job_scan(name, ("active",))
                if job.body is not None
            ]
        for job_id, body, loaded in rows:
            entry = _entry(job_id, body, name, str(node.address()))
            if loaded:
                entry = attrs.evolve(entry, loaded=frozenset((job_id,)))
            if not of or (entry.letter is not None and entry.letter.queue == of):
                _merge(found, entry)

    def requeue(self, entry: DeadJob, letter: Letter, replicate: int | None = None) -> None:
        """Add the job to its queue again, with its RETRY, its copies and its whole TTL, which
        starts anew; then drop the letters.

        A node of disque-tx does both in one step. With an original, or another number of copies, a
        crash in between leaves the letters, and requeueing them again adds the job twice.

        :raises LetterTaken: somebody else has put the letter back since it was listed, say.
        :raises OutcomeUnknown: the job may have been added; the letters are still there.
        """
        requeueing = Requeueing(self._at, entry.letters, entry.loaded)
        moved = requeueing.move(entry.dead_queue) if replicate is None else ""
        if not moved:
            options = letter.add_options.with_replicate(replicate)
            requeueing.add(self._client, letter.queue, letter.body, options)
        others = [letter_id for letter_id in entry.letters if letter_id != moved]
        if others:
            self._client.ack_jobs(*others)
        self._count(entry)

    def _at(self, address: str) -> AbstractContextManager[Disque]:
        if address == str(self._client.address()):
            return nullcontext(self._client)
        return self._opened(address)

    def drop(self, entry: DeadJob) -> None:
        """Acknowledge the letters, which deletes them."""
        self._client.ack_jobs(*entry.letters)
        self._count(entry)

    def _count(self, entry: DeadJob) -> None:
        self._done[next(iter(entry.letters.values()))] += 1

    def tell(self, verb: str, queue: str, choice: str) -> None:
        """Let each node keep among its actions what was done to letters there since the last call,
        as one action: REQUEUE or DROP, the queue, and how the letters were chosen. An original
        keeps none, and neither does a node that has gone meanwhile."""
        done, self._done = self._done, Counter()
        for address, count in done.items():
            with suppress(ClientError), self._at(address) as node:
                node.execute("ACTIONS", "ADD", count, verb, queue, choice)

    def _nodes(self) -> Iterator[Disque]:
        mine = self._client.hello()
        yield self._client
        for node in mine.nodes:
            if node.id == mine.id:
                continue
            address = f"[{node.ip}]:{node.port}" if ":" in node.ip else f"{node.ip}:{node.port}"
            try:
                with self._opened(address) as client:
                    client.ping()
                    yield client
            except ClientError:
                self.unseen.append(address)


def _policy_place(node: Disque, queue: str) -> set[str]:
    """The queue that the policy of a queue names for dead letters, if it does. An original has no
    policies."""
    try:
        setting = node.policy_get(queue).get(_SETTING)
    except Refused:
        return set()
    return {setting.value.replace(_QUEUE_MARK, queue)} - {""} if setting else set()


def _policy_places(node: Disque) -> set[str]:
    """The queues for dead letters that policies name, as they name them."""
    try:
        settings = node.policy_list().values()
    except Refused:
        return set()
    return {each[_SETTING] for each in settings if _SETTING in each} - {"", _QUEUE_MARK}


def _pattern(prefix: str, named: set[str]) -> re.Pattern[str]:
    """What the names of queues with dead letters look like."""
    parts = [re.escape(prefix) + ".*"]
    for name in sorted(named):
        parts.append(".+".join(re.escape(part) for part in name.split(_QUEUE_MARK)))
    return re.compile("|".join(parts), re.DOTALL)


def _loaded_queues(node: Disque, start: str, whole: bool) -> set[str]:
    """The queues whose names begin with ``start``, or are that, that hold letters which came from
    the log and are not queued again yet. An original has none."""
    try:
        if whole:
            return {start} if node.queue_counts(start).counts.loaded else set()
        found: set[str] = set()
        cursor = None
        while True:
            page = node.list_queues(_escaped(start) + "*", "name", 1_000, cursor)
            found |= {row.name for row in page.queues if row.loaded}
            cursor = page.cursor
            if cursor is None:
                return found
    except Refused:
        return set()


def _escaped(text: str) -> str:
    """A glob for exactly this text."""
    return "".join(f"\\{char}" if char in "*?[]\\" else char for char in text)


def _entry(job_id: str, body: bytes, queue: str, address: str) -> DeadJob:
    letters = {job_id: address}
    try:
        letter = Letter.decoded(body)
    except NotADeadLetter as error:
        return DeadJob(job_id, queue, letters, None, str(error))
    return DeadJob(letter.id, queue, letters, letter)


def _merge(found: dict[tuple[str, str], DeadJob], entry: DeadJob) -> None:
    key = (entry.dead_queue, entry.id)
    known = found.get(key)
    if known is not None:
        letters, loaded = known.letters | entry.letters, known.loaded | entry.loaded
        entry = attrs.evolve(known, letters=letters, loaded=loaded)
    found[key] = entry
