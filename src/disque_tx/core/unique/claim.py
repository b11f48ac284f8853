"""A request to add a job once, from its beginning until the job has its copies, and who receives
its result."""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64, mypyc_attr

from disque_tx.core.base.client import REPLY_OFF, Client
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
    new. ``awaited``: the ID of the claim for which it is blocked, if it is."""

    def __init__(self, waiters: Waiters, client: Client, with_new: bool) -> None:
        self._waiters = waiters
        self._client = client
        self._with_new: bool = with_new
        self._awaited: bytes = b""

    def wait(self, claim: Claim) -> None:
        """Block the client until the end of the claim."""
        self._awaited = claim.job_id
        self._waiters.wait_to_add(self._client, claim.job_id, 0)

    def added(self, job_id: bytes, fresh: bool) -> None:
        """Answer with the ID."""
        client = self._client
        mark = client.begin_answer()
        if self._answers():
            if self._with_new:
                client.replies.array(2)
                client.replies.bulk(job_id)
                client.replies.integer(1 if fresh else 0)
            else:
                client.replies.status(job_id)
        if self._awaited:
            self._waiters.add_answered(client, self._awaited, mark)

    def refused(self, error: CommandError) -> None:
        """Answer with the error; a client that is not blocked gets it as any other."""
        if not self._awaited:
            raise error
        client = self._client
        mark = client.begin_answer()
        if self._answers():
            client.replies.error(error.reply())
        self._waiters.add_answered(client, self._awaited, mark)

    def client_id(self) -> i64:
        """The ID of the client."""
        return self._client.id

    def _answers(self) -> bool:
        """Replies of a client that was blocked are not suppressed elsewhere."""
        return not self._awaited or self._client.reply_mode != REPLY_OFF


class Claim(Linked):
    """An ADDJOB UNIQUE request without an answer yet. ``deadline_ms``: when it is given up, 0 for
    never. ``granted``: the keepers that have reserved the key; ``questions``: to those whose
    answers are awaited, of which ``repeats`` were asked again at once. ``making``: the job waits
    for its copies. ``behind``: claims of this node for the same key, which go on when this one has
    ended."""

    __slots__ = (
        "behind",
        "born_ms",
        "deadline_ms",
        "granted",
        "job_id",
        "making",
        "questions",
        "receiver",
        "repeats",
        "request",
        "unique",
    )

    def __init__(self, receiver: KeyReceiver, request: AddRequest, unique: Unique) -> None:
        super().__init__()
        self.receiver: KeyReceiver = receiver
        self.request: AddRequest = request
        self.unique: Unique = unique
        self.behind: list[Claim] = []
        self.job_id: bytes = b""
        self.born_ms: i64 = 0
        self.deadline_ms: i64 = 0
        self.granted: list[bytes] = []
        self.questions: list[KeyQuestion] = []
        self.repeats: i64 = 0
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


class KeyQuestion(Linked):
    """What a node is asked by one KEY RESERVE, until it answers: to reserve the keys of ``claims``.
    ``number``: 0 before it was sent. ``attempts``: how often it was sent. ``unanswered``: it is to
    be sent again, if it still matters."""

    __slots__ = ("attempts", "claims", "node_id", "number", "unanswered")

    def __init__(self, node_id: bytes) -> None:
        super().__init__()
        self.node_id: bytes = node_id
        self.claims: list[Claim] = []
        self.number: i64 = 0
        self.attempts: i64 = 0
        self.unanswered: bool = False

    def waiting(self) -> list[Claim]:
        """The claims that still wait for its answer."""
        return [claim for claim in self.claims if self in claim.questions]


def timeout() -> CommandError:
    """The error of a request for which the time was too short."""
    return CommandError("NOREPL", _TIMEOUT)
