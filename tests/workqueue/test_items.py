"""Items and key prefixes."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.workqueue import Item, KeyPrefix, NotJson
from disque_tx.workqueue.items import job_body, parse_job_body

_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner, max_size=3),
    max_leaves=10,
)  # fmt: skip


class KeyPrefixTests(SynchronousTestCase):
    """Names of keys."""

    def test_names(self) -> None:
        """Keys have the same names as in other implementations."""
        prefix = KeyPrefix("cv")
        self.assertEqual("cv:item:7", prefix.of(":item:7"))
        self.assertEqual("cv:item:7", prefix.concat(":item:").of("7"))

    def test_empty(self) -> None:
        """An empty prefix is refused, because its keys could be those of other programs."""
        self.assertRaises(ValueError, KeyPrefix, "")


class ItemTests(SynchronousTestCase):
    """Creating items."""

    def test_new_ids(self) -> None:
        """Items without a given ID are different pieces of work."""
        self.assertNotEqual(Item.create("x").id, Item.create("x").id)

    def test_text_and_bytes(self) -> None:
        """Text is stored as UTF-8, bytes unchanged."""
        self.assertEqual(b"\xc3\xbc", Item.create("ü").data)
        self.assertEqual("ü", Item.create("ü").text())
        self.assertRaises(UnicodeDecodeError, Item.create(b"\xff").text)

    def test_equal_work(self) -> None:
        """Equal work has equal IDs, and different work different ones."""
        self.assertEqual(Item.by_hash("x"), Item.by_hash(b"x"))
        self.assertNotEqual(Item.by_hash("x").id, Item.by_hash("y").id)

    @given(_JSON)
    def test_json(self, value: Any) -> None:
        """A JSON value is restored unchanged."""
        self.assertEqual(value, Item.from_json(value).json())

    def test_equal_values(self) -> None:
        """Equal values have equal bytes, so that they can be hashed."""
        one, other = ({"a": 1, "b": "ü"}, {"b": "ü", "a": 1})
        self.assertEqual(Item.from_json(one, "1"), Item.from_json(other, "1"))

    def test_no_json(self) -> None:
        """Data that is not JSON is reported, without showing the data."""
        error = self.assertRaises(NotJson, Item.create("secret", "7").json)
        self.assertNotIn("secret", str(error))
        for value in ({1, 2}, float("nan"), "\ud800"):
            self.assertRaises(NotJson, Item.from_json, value)

    def test_bad_ids(self) -> None:
        """An item needs an ID that is text and not empty."""
        self.assertRaises(ValueError, Item.create, "x", "")
        self.assertRaises(ValueError, Item, 7, b"x")

    def test_hidden_data(self) -> None:
        """The data of an item is not shown in logs."""
        self.assertNotIn("secret", repr(Item.create("secret")))


class BodyTests(SynchronousTestCase):
    """Items as bodies of jobs."""

    @given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), st.binary())
    def test_round_trip(self, name: str, data: bytes) -> None:
        """ID and data are restored from the body."""
        self.assertEqual((name, data), parse_job_body(job_body(Item(name, data))))

    @given(st.binary())
    def test_others(self, body: bytes) -> None:
        """No body raises an exception; one with a wrong length is not an item."""
        parse_job_body(body)
        self.assertIsNone(parse_job_body(b"workqueue-item 5 abc" + body[:1]))
        self.assertIsNone(parse_job_body(b"workqueue-item 0 \n" + body))
        self.assertIsNone(parse_job_body(b"workqueue-item 99999999 " + body))

    def test_bytes_of_others(self) -> None:
        """An ID of another program that is not UTF-8 is restored."""
        item = Item(b"\xff".decode(errors="surrogateescape"), b"x")
        self.assertEqual((item.id, b"x"), parse_job_body(job_body(item)))
