"""Large bodies are read in slices, and are what JSON says they are."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.protocols.http.server.largejson import read_flat
from disque_tx.protocols.http.server.slices import Slices
from tests import profiles  # noqa: F401

SCALARS = st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.floats(-1e9, 1e9)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)


class LargeJsonTests(SynchronousTestCase):
    """:func:`read_flat`."""

    def setUp(self) -> None:
        self.clock = Clock()
        self.turns = 0

    def read(self, data: bytes, part_bytes: int = 7) -> Any:
        """The members, after as many slices as that takes; or the error."""
        reading = Deferred.fromCoroutine(read_flat(data, Slices(self.clock), part_bytes))
        found: list[Any] = []
        reading.addBoth(found.append)
        self.turns = 0
        while not found:
            self.clock.advance(1)
            self.turns += 1
        return getattr(found[0], "value", found[0])

    @example({"a": "\U0001f600" * 20, "b": '\\"' * 20}, True, 12)
    @given(st.dictionaries(TEXTS, SCALARS | TEXTS, max_size=5), st.booleans(), st.integers(12, 40))
    def test_as_json(self, values: dict[str, Any], ascii_only: bool, part_bytes: int) -> None:
        """Whatever a job contains, and wherever its parts begin, it arrives as it was sent."""
        data = json.dumps(values, ensure_ascii=ascii_only, indent=1).encode()
        self.assertEqual(values, self.read(data, part_bytes))

    @given(st.dictionaries(TEXTS, TEXTS, min_size=1, max_size=3), st.data())
    def test_damaged(self, values: dict[str, str], data: st.DataObject) -> None:
        """What json refuses is refused, and what it takes is the same here."""
        whole = json.dumps(values).encode()
        at = data.draw(st.integers(0, len(whole) - 1))
        changed = whole[:at] + data.draw(st.sampled_from((b"", b"\\", b'"', b"{", b"\xff", b"\0")))
        changed += whole[at + 1 :]
        try:
            expected = json.loads(changed)
        except ValueError:
            self.assertIsInstance(self.read(changed, 20), ValueError)
            return
        found = self.read(changed, 20)
        if not isinstance(found, ValueError):  # as for halves of characters
            self.assertEqual(expected, found)

    def test_refused(self) -> None:
        """What is nested, too much, or no JSON is refused, however long it is."""
        many = b"{" + b",".join(b'"%d":1' % number for number in range(101)) + b"}"
        most = b"{" + b",".join(b'"%d":1' % number for number in range(100))
        self.assertEqual(100, len(self.read(most + b"}")))
        for data in (
            *(b"", b"[]", b'"x"', b"{", b'{"a"', b'{"a":', b'{"a":1', b'{"a":1}}', b'{"a":1,}'),
            *(b'{"a":[]}', b'{"a":{}}', b'{"a":NaN}', b'{"a":x}', b'{"a":"\\x"}', b'{"a":"\n"}'),
            *(b'{"a":"\\ud800"}', b'{"a":"\\u12', b'{"a":"\x80\x80"}', b"{1:2}", many),
            b'{"a":' + b"1" * 1_000 + b"}", most + b",",
        ):  # fmt: skip
            self.assertIsInstance(self.read(data), ValueError, data[:20])

    def test_slices(self) -> None:
        """A large string is read in many slices, between which the node serves others, and kept
        as bytes."""
        body = b"\\u0041\xe2\x82\xac" * 100_000
        found = self.read(b'{"body":"' + body + b'","n":1}', 32 * 1024)
        self.assertEqual({"body": "A\u20ac".encode() * 100_000, "n": 1}, found)
        self.assertGreater(self.turns, 10)
