"""How much of the bodies of jobs a list shows: exact numbers, which clients must reckon with."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.protocols.http.api.base.bodies import Bodies, whole_characters

_WHOLE = 128 * 1024
_BEGINNING = 1024
_ALL = 4 * 1024 * 1024


class BodyTests(SynchronousTestCase):
    """``Bodies``."""

    def put(self, bodies: Bodies, body: bytes) -> dict[str, Any]:
        """The members of the next job in a list."""
        values: dict[str, Any] = {}
        bodies.put(values, body[:_WHOLE], len(body))
        return values

    def test_one(self) -> None:
        """A body of 128 KiB is whole; of a longer one there is the first KiB."""
        self.assertEqual({"body": "x" * _WHOLE}, self.put(Bodies(), b"x" * _WHOLE))
        cut = {"body": "x" * _BEGINNING, "body_truncated": True, "body_bytes": _WHOLE + 1}
        self.assertEqual(cut, self.put(Bodies(), b"x" * (_WHOLE + 1)))

    def test_all(self) -> None:
        """All whole ones have 4 MiB together; after that each still has its first KiB, and is
        whole if it is no longer."""
        bodies = Bodies()
        for _ in range(_ALL // _WHOLE - 1):
            self.assertNotIn("body_truncated", self.put(bodies, b"x" * _WHOLE))
        self.put(bodies, b"x")
        cut = self.put(bodies, b"x" * _WHOLE)
        self.assertEqual((_BEGINNING, _WHOLE), (len(cut["body"]), cut["body_bytes"]))
        rest = _WHOLE - 1 - _BEGINNING
        self.assertEqual({"body": "x" * rest}, self.put(bodies, b"x" * rest))
        for size, shown in ((_BEGINNING, _BEGINNING), (_BEGINNING + 1, _BEGINNING), (1, 1)):
            found = self.put(bodies, b"x" * size)
            self.assertEqual((shown, size != shown), (len(found["body"]), len(found) > 1), size)

    def test_characters(self) -> None:
        """A character that the end cuts is left out; other bytes stay as they are."""
        for character in ("é", "€", "😀"):
            code = character.encode()
            for cut in range(1, len(code)):
                self.assertEqual(b"ab", whole_characters(b"ab" + code[:cut]), (character, cut))
            self.assertEqual(b"ab" + code, whole_characters(b"ab" + code))
        for data in (b"a\xffb", b"\xe2\x82ab", b"\xffabc", b""):
            self.assertEqual(data, whole_characters(data))
