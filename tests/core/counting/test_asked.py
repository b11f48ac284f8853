"""Questions of clients within those of nodes, and which questions a node takes."""

from __future__ import annotations

from disque_tx.core.counting.asked import (
    ASK_WORD_BYTES_MAX,
    ASK_WORDS_MAX,
    ask_words,
    asked_words,
)
from disque_tx.core.counting.flushing import FLUSH_ANY
from disque_tx.core.counting.requests import ROWS_MAX
from disque_tx.core.counting.task import ResultReceiver
from tests.core.bench import NodeCase


class WordsTests(NodeCase):
    """The words of a question."""

    def test_round_trip(self) -> None:
        """A question arrives as it was asked; what nodes of later versions put behind it is no part
        of it."""
        for question in ([b"WHATEVER"], [b"A", b"", b"B\0"], [b"x"] * ASK_WORDS_MAX):
            self.assertEqual(question, asked_words(ask_words(question)))
            if len(question) < ASK_WORDS_MAX:
                self.assertEqual(question, asked_words([*ask_words(question), b"later"]))

    def test_none(self) -> None:
        """What is no question, or has too many words or too long ones, is one without words."""
        longest = b"x" * ASK_WORD_BYTES_MAX
        self.assertEqual([longest], asked_words(ask_words([longest])))
        for words in (
            [],
            [b"ASK"],
            [b"ASK", b"1"],
            [b"ASK", b"0", b"A"],
            [b"ASK", b"2", b"A"],
            [b"ASK", b"x", b"A"],
            [b"ASK", b"-1", b"A"],
            ask_words([b"x"] * (ASK_WORDS_MAX + 2)),
            ask_words([longest + b"x"]),
            ask_words([b"A", longest + b"x"]),
        ):
            self.assertEqual([], asked_words(words), len(words))


class Taken(ResultReceiver):
    """Keeps the answer."""

    def __init__(self) -> None:
        self.rows: list[bytes] | None = None

    def result(self, words: list[bytes]) -> None:
        self.rows = words

    def gone(self) -> bool:
        return False


class PerformTests(NodeCase):
    """Questions of other nodes."""

    def taken(self, *words: bytes) -> bool:
        """Whether this is a question; one that is, is answered when its turn has come."""
        receiver = Taken()
        found = self.node.queue_queries.perform(list(words), receiver)
        while found and receiver.rows is None and self.node.state.slices.count():
            self.pass_ms(1)
        self.assertEqual(found, receiver.rows is not None, words)
        return found

    def test_taken(self) -> None:
        """Every question of the protocol is taken and answered, and nothing else is."""
        self.add(b"q")
        for words in (
            [b"COUNT"],
            [b"COUNT", b"q", b"none"],
            [b"COUNT"] + [b"q"] * ROWS_MAX,
            [b"FLUSH", b"q", b"1"],
            [b"FLUSH", b"q", b"%d" % FLUSH_ANY],
        ):
            self.assertTrue(self.taken(*words), words[:3])
        for words in (
            [],
            [b"OTHER", b"q"],
            [b"COUNT"] + [b"q"] * (ROWS_MAX + 1),
            [b"FLUSH", b"q"],
            [b"FLUSH", b"q", b"0"],
            [b"FLUSH", b"q", b"%d" % (FLUSH_ANY + 1)],
            [b"FLUSH", b"q", b"x"],
            [b"FLUSH", b"q", b"1", b"2"],
            [b"LIST", b"q"],
        ):
            self.assertFalse(self.taken(*words), words[:3])
