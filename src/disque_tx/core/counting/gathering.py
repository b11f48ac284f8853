"""One request of a client, from the results of this node and of others."""

from __future__ import annotations

from mypy_extensions import i64

from disque_tx.core.base.client import BLOCKED_TASK, REPLY_OFF, Client
from disque_tx.core.counting.answers import Answer
from disque_tx.core.counting.questions import ELSEWHERE, HERE
from disque_tx.core.counting.task import Asker, Performer, ResultReceiver
from disque_tx.core.queues.waiters import Waiters


class _Others(Asker):
    """Passes on what other nodes answer."""

    __slots__ = ("_gathering",)

    def __init__(self, gathering: AnswerGathering) -> None:
        self._gathering = gathering

    def answer(self, words: list[bytes], sender: bytes) -> bool:
        return self._gathering.receive(words, sender)

    def all_answered(self, missing: list[bytes]) -> None:
        self._gathering.others_done(missing)


class AnswerGathering(ResultReceiver):
    """The answer to one request of a client, from the results of this node and of others. The
    client is blocked only if they are not there at once."""

    __slots__ = (
        "_answer",
        "_client",
        "_here",
        "_missing",
        "_nodes",
        "_one",
        "_others",
        "_performer",
        "_scope",
        "_wait",
        "_waiters",
    )

    def __init__(
        self,
        performer: Performer,
        waiters: Waiters,
        client: Client,
        answer: Answer,
        scope: i64,
        one: bytes,
    ) -> None:
        self._one = one
        self._performer = performer
        self._waiters = waiters
        self._client = client
        self._answer = answer
        self._scope: i64 = scope
        self._wait: i64 = 0
        self._nodes: i64 = 0
        self._missing: list[bytes] = []
        # Whether the results of this node, and of the others, are still to come.
        self._here: bool = False
        self._others: bool = False

    def begin(self, words: list[bytes]) -> None:
        """Ask; if not all results are there at once, the client waits."""
        self._ask(words)
        if self._here or self._others:
            self._wait = self._waiters.wait_for_task(self._client)

    def _ask(self, words: list[bytes]) -> None:
        self._nodes = 0
        self._missing = []
        self._here = self._scope != ELSEWHERE
        self._others = self._scope != HERE
        if self._others:
            self._performer.ask_others(words, _Others(self), self._scope, self._one)
        if self._scope != ELSEWHERE:
            self._performer.perform(words, self)

    def result(self, words: list[bytes]) -> None:
        self._here = False
        self.receive(words, b"")
        self._finish()

    def failed(self) -> None:
        client = self._client
        if not self.gone():
            if client.reply_mode != REPLY_OFF:
                client.replies.error(b"ERR A fault in the node; its log has the details")
            self._waiters.answered(client)

    def receive(self, words: list[bytes], sender: bytes) -> bool:
        """The result of one node, of this one if ``sender`` is empty; ``False`` if it is none."""
        taken = self._answer.receive(words, sender)
        if taken:
            self._nodes += 1
        return taken

    def others_done(self, missing: list[bytes]) -> None:
        """All other nodes have answered, or will not."""
        self._others = False
        self._missing = missing
        self._finish()

    def gone(self) -> bool:
        client = self._client
        return client.blocked != BLOCKED_TASK or client.blocked_number != self._wait

    def _finish(self) -> None:
        if self._here or self._others:
            return
        more = self._answer.next_words()
        if more:
            self._ask(more)
            return
        client = self._client
        waited = self._wait != 0
        if waited and self.gone():
            return
        if not waited or client.reply_mode != REPLY_OFF:
            now_ms = self._performer.now_ms()
            self._answer.write(client.replies, self._nodes, self._missing, now_ms)
        if waited:
            self._waiters.answered(client)
