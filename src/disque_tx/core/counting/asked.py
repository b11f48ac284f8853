"""ASK: one question that each node answers for itself, at this node or at several.

What may be asked, and how it is answered, is the table of :mod:`disque_tx.commands.asking`; here it
is passed on. The question of another node has the words ``ASK``, how many words follow, and these;
one that changes something has the time until which it holds behind them (see
:mod:`disque_tx.core.counting.questions`).
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64, mypyc_attr

from disque_tx.core.base.client import NOT_BLOCKED, Client
from disque_tx.core.counting.answers import Answer
from disque_tx.core.counting.counts import number_of
from disque_tx.core.counting.task import ResultReceiver, ResultTask
from disque_tx.core.counting.wordreplies import WordReplies, is_reply, write_reply
from disque_tx.messages.records import ReplySink

#: What a question is, to who answers it.
NO_QUESTION: Final = 0
READS: Final = 1
CHANGES: Final = 2
#: Questions that change nothing.
READING: Final = frozenset(
    (
        *(b"QUEUES", b"QUEUE", b"COUNTS", b"HOLDS", b"QUEUED", b"BODIES", b"JOBS", b"SHOW"),
        *(b"OUTLINE", b"CLIENTS", b"SLOWLOG", b"LATENCY", b"INFO", b"NODES"),
        *(b"HISTORY", b"ACTIONS", b"FIND", b"TROUBLES", b"USUAL", b"PROGRESS", b"WORKERS"),
        *(b"ENDED", b"EVENTS"),
    )
)
#: Words of one question, and bytes of each.
ASK_WORDS_MAX: Final = 1_010
ASK_WORD_BYTES_MAX: Final = 4_096


@mypyc_attr(allow_interpreted_subclasses=True)
class Respondent:
    """Answers questions for this node."""

    def kind(self, words: list[bytes]) -> i64:
        """``READS``, ``CHANGES`` or ``NO_QUESTION``."""
        return NO_QUESTION

    def begin(self, words: list[bytes]) -> Client:
        """Run what is a question for a client of its own, whose replies are :class:`WordReplies`:
        the answer is there when the client is not blocked."""
        raise NotImplementedError

    def give_up(self, client: Client) -> None:
        """Stop working on an answer: the asker no longer waits for it."""
        raise NotImplementedError


def reply_words(client: Client) -> list[bytes]:
    """The answer, as words of a report."""
    replies = client.replies
    assert isinstance(replies, WordReplies)
    return replies.words


def ask_words(words: list[bytes]) -> list[bytes]:
    """A question of a client as one of a node."""
    return [b"ASK", b"%d" % len(words), *words]


def asked_words(words: list[bytes]) -> list[bytes]:
    """The question of a client in one of a node; empty if it is none."""
    if len(words) < 3 or len(words) > ASK_WORDS_MAX + 3:
        return []
    size = number_of(words[1])
    if size < 1 or size > len(words) - 2:
        return []
    question = words[2 : size + 2]
    for word in question:
        if len(word) > ASK_WORD_BYTES_MAX:
            return []
    return question


class Answering(ResultTask):
    """Answers the question of another node when its turn has come, so that many of them do not hold
    up a turn. ``until_ms``: when it ends, 0 for never. ``client``: it has begun already."""

    __slots__ = ("_client", "_respondent", "_until_ms", "_words")

    def __init__(
        self,
        respondent: Respondent,
        words: list[bytes],
        until_ms: i64,
        receiver: ResultReceiver,
        client: Client | None = None,
    ) -> None:
        super().__init__(receiver)
        self._client: Client | None = client
        self._respondent = respondent
        self._words = words
        self._until_ms: i64 = until_ms

    def step(self, now_ms: i64) -> bool:
        late = self._until_ms != 0 and now_ms > self._until_ms
        client = self._client
        if client is None:
            if late:
                return True
            client = self._client = self._respondent.begin(self._words)
        if client.blocked == NOT_BLOCKED:
            self.receiver.result(reply_words(client))
            return True
        if late or self.receiver.gone():
            self._respondent.give_up(client)
            return True
        return False


class AskAnswer(Answer):
    """The answers of all nodes, each with its ID. ``mine``: of this node."""

    __slots__ = ("_found", "_mine")

    def __init__(self, mine: bytes) -> None:
        self._mine = mine
        self._found: dict[bytes, list[bytes]] = {}

    def receive(self, words: list[bytes], sender: bytes) -> bool:
        if not is_reply(words):
            return False
        self._found[sender or self._mine] = words
        return True

    def write(self, replies: ReplySink, nodes: i64, missing: list[bytes], now_ms: i64) -> None:
        replies.mapping(2)
        replies.bulk(b"answers")
        replies.array(len(self._found))
        for node in sorted(self._found):
            replies.array(2)
            replies.bulk(node)
            write_reply(self._found[node], replies)
        replies.bulk(b"nodes-missing")
        replies.array(len(missing))
        for node in missing:
            replies.bulk(node)
