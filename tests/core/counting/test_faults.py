"""Faults of this program while an answer is worked on: nobody waits for it forever."""

from __future__ import annotations

from disque_tx.commands.base.values import Error, ValueReplies
from disque_tx.core.base.client import BLOCKED_TASK, NOT_BLOCKED, Client
from disque_tx.core.counting.asked import READS, Respondent
from disque_tx.core.counting.questions import HERE
from disque_tx.core.counting.requests import TASKS_OF_ONE_MAX
from disque_tx.messages.bus import QueryMessage
from disque_tx.messages.bustypes import QUERY, REPORT
from tests.core.counting.test_questions import QuestionCase
from tests.core.peerbench import B


class _Faulty(Respondent):
    """Meets a fault of this program: at once, or with ``client`` once that is not blocked."""

    def __init__(self, client: Client | None = None) -> None:
        self.client = client

    def kind(self, words: list[bytes]) -> int:
        return READS

    def begin(self, words: list[bytes]) -> Client:
        if self.client is None:
            raise LookupError("planted")
        return self.client


class FaultTests(QuestionCase):
    """A fault while an answer is worked on."""

    def test_client(self) -> None:
        """Who waits for the answer gets an error: a page of the console would never end loading."""
        inner = Client(0, ValueReplies(), b"", self.now_ms)  # replies that cannot be passed on
        inner.blocked = BLOCKED_TASK
        self.node.queue_queries.respondent = _Faulty(inner)
        client = self.connect()
        self.node.queue_queries.ask(client, [b"INFO"], HERE, b"")
        self.assertEqual(BLOCKED_TASK, client.blocked)
        inner.blocked = NOT_BLOCKED
        self.assertRaises(AssertionError, self.pass_ms, 1)
        (reply,) = self.replies(client)
        assert isinstance(reply, Error)
        self.assertIn(b"fault", reply.line)
        self.assertEqual(NOT_BLOCKED, client.blocked)

    def test_peer(self) -> None:
        """However many questions of a node met a fault, the next one is answered."""
        self.node.queue_queries.respondent = _Faulty()
        for number in range(TASKS_OF_ONE_MAX):
            self.receive(B, QueryMessage(QUERY, number, [b"ASK", b"1", b"INFO"]))
            self.assertRaises(LookupError, self.pass_ms, 1)
        self.receive(B, QueryMessage(QUERY, 9, [b"COUNT", b"q"]))
        self.assertEqual(REPORT, self.asked(B).type)
