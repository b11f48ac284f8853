"""How jobs ended, for clients of other nodes that wait for that: a node is asked again and again
until it has the answer."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from mypy_extensions import i64

from disque_tx.core.base.client import NOT_BLOCKED, Client
from disque_tx.core.counting.wordreplies import WordReplies
from disque_tx.core.node import Node
from disque_tx.errors import CommandError

#: Who does not ask again for so long waits no more.
FORGOTTEN_MS: Final = 5_000
#: Jobs that others may wait for at the same time.
AWAITED_MAX: Final = 10_000


class AwaitedEnding:
    """A job whose end is waited for elsewhere. ``client``: waits here in place of those that ask,
    and gets the answer of WAITJOB."""

    __slots__ = ("asked_ms", "client")

    def __init__(self, client: Client) -> None:
        self.client: Client = client
        self.asked_ms: i64 = client.created_ms


class AwaitedEndings:
    """Of one node. The answer is kept for :data:`FORGOTTEN_MS` after the last question."""

    def __init__(self, node: Node) -> None:
        self._node = node
        # The one that was asked for last at the end.
        self._awaited: OrderedDict[bytes, AwaitedEnding] = OrderedDict()

    def of(self, job_id: bytes) -> list[bytes]:
        """The reply of WAITJOB as the words of a report; empty while the job has not ended. Raises
        ``CommandError``: NOJOB for a job that is not known here, TRYLATER for too many."""
        now_ms = self._node.now_ms
        self._forget(now_ms)
        queries = self._node.queue_queries
        entry = self._awaited.get(job_id)
        if entry is None:
            if len(self._awaited) >= AWAITED_MAX:
                raise CommandError("TRYLATER", "The ends of too many jobs are waited for here")
            entry = AwaitedEnding(Client(0, WordReplies(), b"", now_ms))
            queries.wait_for_job(entry.client, job_id, FORGOTTEN_MS)
            self._awaited[job_id] = entry
        elif entry.client.blocked != NOT_BLOCKED:
            queries.wait_longer(entry.client, FORGOTTEN_MS)
        entry.asked_ms = now_ms
        self._awaited.move_to_end(job_id)
        replies = entry.client.replies
        assert isinstance(replies, WordReplies)
        return replies.words if entry.client.blocked == NOT_BLOCKED else []

    def _forget(self, now_ms: i64) -> None:
        while self._awaited:
            job_id, oldest = next(iter(self._awaited.items()))
            if now_ms - oldest.asked_ms < FORGOTTEN_MS:
                break
            del self._awaited[job_id]
