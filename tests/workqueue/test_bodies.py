"""Items as bodies of jobs."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.workqueue import Item, bodies


class BodyTests(SynchronousTestCase):
    """Back and forth."""

    @given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), st.binary())
    def test_round_trip(self, name: str, data: bytes) -> None:
        """ID and data come back as they went in."""
        self.assertEqual((name, data), bodies.decode(bodies.encode(Item(name, data))))

    @given(st.binary())
    def test_others(self, body: bytes) -> None:
        """Any bytes at all are no error, and what is cut or longer than said is no item."""
        bodies.decode(body)
        self.assertIsNone(bodies.decode(b"workqueue-item 5 abc" + body[:1]))
        self.assertIsNone(bodies.decode(b"workqueue-item 0 \n" + body))
        self.assertIsNone(bodies.decode(b"workqueue-item 99999999 " + body))

    def test_bytes_of_others(self) -> None:
        """An ID of another program that is not UTF-8 survives."""
        item = Item(b"\xff".decode(errors="surrogateescape"), b"x")
        self.assertEqual((item.id, b"x"), bodies.decode(bodies.encode(item)))
