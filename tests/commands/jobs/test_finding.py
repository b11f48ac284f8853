"""FIND: jobs with a text in them."""

from __future__ import annotations

from disque_tx.commands.base.values import Status
from disque_tx.commands.jobs.finding import find
from disque_tx.commands.jobs.jobs import addjob
from tests.commands.desk import DeskCase


class FindTests(DeskCase):
    """A node with a few jobs."""

    def setUp(self) -> None:
        super().setUp()
        self.first = self.add(b"mail", b'{"to": "Ada"}')
        self.second = self.add(b"mail", b'{"to": "Bob"}')
        self.third = self.add(b"reports", b"for ada")

    def add(self, queue: bytes, body: bytes) -> bytes:
        """A job; its ID."""
        status = self.call(addjob, b"ADDJOB", queue, body, b"0", b"RETRY", b"60")
        assert isinstance(status, Status)
        return status.text

    def find(self, *words: bytes) -> list[bytes]:
        """What a whole walk finds."""
        cursor = b"0"
        found: list[bytes] = []
        while True:
            answer = self.call(find, b"FIND", cursor, *words)
            assert isinstance(answer, list)
            cursor, seen, total, some = answer  # type: ignore[assignment]
            self.assertEqual((3, 3), (seen, total))
            found += some  # type: ignore[arg-type]
            if cursor == b"0":
                return sorted(found)

    def test_texts(self) -> None:
        """Any of the texts counts, in the body or the ID, and in any case of letters."""
        self.assertEqual([self.first, self.third], self.find(b"any", b"0", b"", b"ada"))
        everyone = sorted([self.first, self.second, self.third])
        self.assertEqual(everyone, self.find(b"any", b"0", b"", b"ada", b"bob"))
        self.assertEqual([self.second], self.find(b"any", b"0", b"", self.second.lower()))
        self.assertEqual([], self.find(b"any", b"0", b"", b"carol"))

    def test_filters(self) -> None:
        """Queue, state and attempts leave out the others."""
        self.assertEqual([self.first], self.find(b"any", b"0", b"mail", b"ada"))
        self.assertEqual([], self.find(b"active", b"0", b"", b"ada"))
        self.assertEqual([self.third], self.find(b"queued", b"0", b"reports", b"ada"))
        self.assertEqual([], self.find(b"any", b"1", b"", b"ada"))

    def test_refused(self) -> None:
        """What could not be a search, or would be one of everything, is refused."""
        syntax = b"ERR syntax error"
        for words, line in (
            ((b"any", b"0", b"", b""), syntax),
            ((b"any", b"0", b"", b"ada", b""), syntax),
            ((b"nowhere", b"0", b"", b"ada"), syntax),
            ((b"any", b"-1", b"", b"ada"), syntax),
            ((b"any", b"0", b"", *[b"x"] * 5), b"ERR FIND takes at most 4 texts"),
        ):
            self.assert_refused(line, find, b"FIND", b"0", *words)
