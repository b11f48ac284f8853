"""A request to add a job once, from its beginning until the job has its copies."""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disque_tx.core.base.client import Client
from disque_tx.core.jobs.addrequest import AddRequest, Unique
from disque_tx.core.unique.receivers import KeyReceiver
from disque_tx.errors import CommandError
from disque_tx.messages.records import KeyEntry, Linked

_TIMEOUT: Final = "Timeout reached before the job could be added with its key"


class Claim(Linked):
    """An ADDJOB UNIQUE request without an answer yet. ``client``: who is blocked for it, if any.
    ``deadline_ms``: when it is given up, 0 for never. ``granted``: the keepers that have reserved
    the key; ``asked``: the one whose answer is awaited, ``number`` of the question, and how often
    it was asked (``attempts``). ``making``: the job waits for its copies."""

    __slots__ = (
        "asked",
        "attempts",
        "born_ms",
        "client",
        "deadline_ms",
        "granted",
        "job_id",
        "making",
        "number",
        "receiver",
        "request",
        "unique",
    )

    def __init__(self, receiver: KeyReceiver, request: AddRequest, unique: Unique) -> None:
        super().__init__()
        self.receiver: KeyReceiver = receiver
        self.request: AddRequest = request
        self.unique: Unique = unique
        self.client: Client | None = None
        self.job_id: bytes = b""
        self.born_ms: i64 = 0
        self.deadline_ms: i64 = 0
        self.granted: list[bytes] = []
        self.asked: bytes = b""
        self.number: i64 = 0
        self.attempts: i64 = 0
        self.making: bool = False

    def entry(self, state: i64) -> KeyEntry:
        """What keepers get to know of it."""
        unique = self.unique
        life_ms = self.request.ttl_s * 1000
        keep_ms = unique.for_s * 1000
        return KeyEntry(unique.key, self.job_id, state, life_ms, keep_ms, self.born_ms)

    def sooner(self, at_ms: i64) -> i64:
        """The earlier of this time and the deadline."""
        return min(at_ms, self.deadline_ms) if self.deadline_ms else at_ms


def timeout() -> CommandError:
    """The error of a request for which the time was too short."""
    return CommandError("NOREPL", _TIMEOUT)
