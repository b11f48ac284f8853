"""A request to add a job once, from its beginning until the job has its copies, and who receives
its result."""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64, mypyc_attr

from disque_tx.core.base.client import BLOCKED_KEY, REPLY_OFF, Client
from disque_tx.core.jobs.addrequest import AddRequest, Unique
from disque_tx.core.queues.waiters import Waiters
from disque_tx.errors import CommandError
from disque_tx.messages.records import KeyEntry, Linked

_TIMEOUT: Final = "Timeout reached before the job could be added with its key"


@mypyc_attr(allow_interpreted_subclasses=True)
class KeyReceiver:
    """Receives the result of adding a job once, by one call of either method."""

    def added(self, job_id: bytes, fresh: bool) -> None:
        """This job has the key; ``fresh``: it was added now, and has its copies."""
        raise NotImplementedError

    def refused(self, error: CommandError) -> None:
        """No job was added, and this node knows of none that has the key."""
        raise NotImplementedError

    def client_id(self) -> i64:
        """The client that asked, for the event log; 0 for none."""
        return 0


class NoReceiver(KeyReceiver):
    """Ignores the result: the client that wanted it has left."""

    def added(self, job_id: bytes, fresh: bool) -> None:
        """Ignore the result."""

    def refused(self, error: CommandError) -> None:
        """Ignore the error."""


class KeyClient(KeyReceiver):
    """A client that sent ADDJOB with UNIQUE. ``with_new``: it wants to know whether the job is
    new."""

    def __init__(self, waiters: Waiters, client: Client, with_new: bool) -> None:
        self._waiters = waiters
        self._client = client
        self._with_new: bool = with_new

    def added(self, job_id: bytes, fresh: bool) -> None:
        """Answer with the ID."""
        client = self._client
        if self._answers():
            if self._with_new:
                client.replies.array(2)
                client.replies.bulk(job_id)
                client.replies.integer(1 if fresh else 0)
            else:
                client.replies.status(job_id)
        self._released()

    def refused(self, error: CommandError) -> None:
        """Answer with the error; a client that is not blocked gets it as any other."""
        if self._client.blocked != BLOCKED_KEY:
            raise error
        if self._answers():
            self._client.replies.error(error.reply())
        self._released()

    def client_id(self) -> i64:
        """The ID of the client."""
        return self._client.id

    def _answers(self) -> bool:
        """Replies of a client that was blocked are not suppressed elsewhere."""
        return self._client.blocked != BLOCKED_KEY or self._client.reply_mode != REPLY_OFF

    def _released(self) -> None:
        if self._client.blocked == BLOCKED_KEY:
            self._waiters.answered(self._client)


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
