"""MessagePack, as people read it."""

from __future__ import annotations

import json
import math
import struct
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.protocols.http.api.jobs.messagepack import (
    DEPTH_MAX,
    VALUES_MAX,
    is_container,
    unpacked,
)
from tests import profiles  # noqa: F401


def packed(value: Any) -> bytes:
    """A value, written by the longest form of its kind."""
    if value is None or isinstance(value, bool):
        return {None: b"\xc0", False: b"\xc2", True: b"\xc3"}[value]
    if isinstance(value, int):
        return b"\xd3" + struct.pack(">q", value)
    if isinstance(value, float):
        return b"\xcb" + struct.pack(">d", value)
    if isinstance(value, str):
        data = value.encode()
        return b"\xdb" + struct.pack(">I", len(data)) + data
    if isinstance(value, list):
        return b"\xdd" + struct.pack(">I", len(value)) + b"".join(map(packed, value))
    members = b"".join(packed(name) + packed(member) for name, member in value.items())
    return b"\xdf" + struct.pack(">I", len(value)) + members


texts = st.text(st.characters(exclude_categories=["Cs"]))
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | texts,
    lambda inner: st.lists(inner) | st.dictionaries(texts, inner),
    max_leaves=20,
)


class UnpackedTests(SynchronousTestCase):
    """``unpacked``."""

    @given(values)
    def test_any(self, value: Any) -> None:
        """What was packed is read as it was."""
        self.assertEqual(value, unpacked(packed(value)))

    def test_forms(self) -> None:
        """Each kind and length of the specification is read."""
        for data, expected in (
            (b"\x00", 0), (b"\x7f", 127), (b"\xe0", -32), (b"\xff", -1), (b"\xc0", None),
            (b"\xc2", False), (b"\xc3", True), (b"\xcc\xff", 255), (b"\xcd\x01\x00", 256),
            (b"\xce\x00\x01\x00\x00", 65_536), (b"\xcf" + b"\xff" * 8, 2**64 - 1),
            (b"\xd0\x80", -128), (b"\xd1\x80\x00", -32_768), (b"\xd2\x80\x00\x00\x00", -(2**31)),
            (b"\xca\x3f\x00\x00\x00", 0.5), (b"\xa2hi", "hi"), (b"\xd9\x02hi", "hi"),
            (b"\xda\x00\x02hi", "hi"), (b"\xdb\x00\x00\x00\x02hi", "hi"), (b"\xa1\xff", "\\xff"),
            (b"\xc4\x02hi", "hi"), (b"\xc5\x00\x01\xff", {"base64": "/w=="}),
            (b"\xc6\x00\x00\x00\x00", ""), (b"\x92\x01\x02", [1, 2]), (b"\xdc\x00\x01\x01", [1]),
            (b"\x80", {}), (b"\x81\x01\xc0", {"1": None}), (b"\xde\x00\x01\xa1a\x90", {"a": []}),
            (b"\xdd\x00\x00\x00\x01\x01", [1]), (b"\xdf\x00\x00\x00\x01\x01\x02", {"1": 2}),
            (b"\xd4\x05x", "(extension 5, 1 bytes)"), (b"\xd5\x05xx", "(extension 5, 2 bytes)"),
            (b"\xd6\x05" + b"x" * 4, "(extension 5, 4 bytes)"),
            (b"\xd7\x05" + b"x" * 8, "(extension 5, 8 bytes)"),
            (b"\xd8\xff" + b"x" * 16, "(extension -1, 16 bytes)"),
            (b"\xc7\x03\x01abc", "(extension 1, 3 bytes)"),
            (b"\xc8\x00\x00\x01", "(extension 1, 0 bytes)"),
            (b"\xc9\x00\x00\x00\x02\x01ab", "(extension 1, 2 bytes)"),
        ):  # fmt: skip
            self.assertEqual(expected, unpacked(data), data)
        self.assertTrue(math.isnan(unpacked(b"\xca\x7f\xc0\x00\x00")))

    def test_refused(self) -> None:
        """Nothing is made of what announces more than is there, is nested deeper than people read,
        or has more values than are shown."""
        deep = b"\x91" * DEPTH_MAX + b"\x01"
        self.assertEqual("[" * DEPTH_MAX + "1" + "]" * DEPTH_MAX, json.dumps(unpacked(deep)))
        many = VALUES_MAX - 1
        self.assertEqual(many, len(unpacked(b"\xdc" + struct.pack(">H", many) + b"\x01" * many)))
        for data in (
            b"", b"\xc1", b"\x01\x01", b"\x91" + deep, b"\x91" * 10_000, b"\x81" * 10_000,
            b"\xdf\xff\xff\xff\xff", b"\xdf\xff\xff\xff\xff" + b"\x01" * 60_000,
            b"\xdd\xff\xff\xff\xff\x01", b"\xdb\xff\xff\xff\xffx", b"\xc6\xff\xff\xff\xff", b"\xcf",
            b"\xc9\xff\xff\xff\xff\x01", b"\xdd\x80", b"\x91", b"\x81\x01", b"\xa2h",
            b"\xdc" + struct.pack(">H", many + 1) + b"\x01" * (many + 1),
        ):  # fmt: skip
            self.assertRaises(ValueError, unpacked, data)

    @given(st.binary(max_size=200))
    def test_nonsense(self, data: bytes) -> None:
        """Any bytes are refused, or have a value that JSON has."""
        try:
            value = unpacked(data)
        except ValueError:
            return
        json.dumps(value)

    def test_container(self) -> None:
        """JSON, text and numbers are not taken for lists or maps."""
        for data in (b"", b"{}", b"[1]", b"hello", b"\xc0", "ä".encode(), b"\xff"):
            self.assertFalse(is_container(data), data)
        for data in (b"\x80", b"\x9f", b"\xdc", b"\xdf"):
            self.assertTrue(is_container(data), data)
