"""Which questions ASK knows, and with how many words."""

from __future__ import annotations

from disque_tx.commands import asking
from disque_tx.core.counting.asked import NO_QUESTION
from tests.commands.jobs.test_counting import OverviewCase
from tests.commands.test_asking import UNKNOWN

#: Name, and least and most words with it.
_TABLE = """
QUEUES 3 3, QUEUE 2 2, COUNTS 2 101, HOLDS 2 1001, QUEUED 4 4, BODIES 4 1003, JOBS 4 5, FIND 6 9,
OUTLINE 2 2, ENDED 2 2, SHOW 2 2, PROGRESS 3 3, CLIENTS 3 3, WORKERS 3 3, SLOWLOG 3 3, LATENCY 1 1,
HISTORY 4 5, EVENTS 3 3, TROUBLES 2 2, USUAL 2 101, ACTIONS 3 3, INFO 1 2, NODES 1 1,
ACKJOB 2 1001, FASTACK 2 1001, DELJOB 2 1001, ENQUEUE 2 1001, DEQUEUE 2 1001, WORKING 2 6,
MOVE 3 1007, NACK 2 1005
"""


class TableTests(OverviewCase):
    """A node alone."""

    def test_words(self) -> None:
        """Nodes of different releases, and pages of the console, ask each other with so many words;
        with fewer or more a question is unknown."""
        rows = [row.split() for row in _TABLE.replace("\n", " ").split(",")]
        self.assertEqual({row[0].encode() for row in rows}, set(asking._QUESTIONS))
        respondent = asking.LocalRespondent(self.server)
        for name, least, most in rows:
            for count in (int(least), int(most)):
                words = [name.lower().encode(), *[b"1"] * (count - 1)]
                self.assertNotEqual(NO_QUESTION, respondent.kind(words), (name, count))
            for count in (int(least) - 1, int(most) + 1):
                words = [name.encode(), *[b"1"] * (count - 1)] if count else []
                self.assertEqual(NO_QUESTION, respondent.kind(words), (name, count))

    def test_refused(self) -> None:
        """A client hears of it."""
        for words in ((b"QUEUE",), (b"QUEUE", b"a", b"b"), (b"LATENCY", b"x"), (b"NOTHING",)):
            self.assert_refused(UNKNOWN, asking.ask, b"ASK", b"NODE", *words)
