"""The shell-like quoting of inline requests, configuration and nodes files."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.text.quoting import quote, split
from tests import profiles  # noqa: F401


class SplitTests(SynchronousTestCase):
    """``split``, case by case (client protocol, section 3.2)."""

    def test_words(self) -> None:
        """Blanks, quotes and escapes have the same meaning as in the original."""
        cases: list[tuple[bytes, list[bytes]]] = [
            (b"", []),
            (b" \t\v\f ", []),
            (b"a", [b"a"]),
            (b"  ADDJOB q  body\t0 ", [b"ADDJOB", b"q", b"body", b"0"]),
            (b'PI"NG"', [b"PING"]),
            (b"PI'NG'", [b"PING"]),
            (b'"a b" c', [b"a b", b"c"]),
            (b'PING "a\\x41 b\\n"', [b"PING", b"aA b\n"]),
            (b'"\\n\\r\\t\\b\\a"', [b"\n\r\t\b\a"]),
            (b'"\\xfF\\x00"', [b"\xff\0"]),
            (b'"\\xg1\\q\\\\\\""', [b'xg1q\\"']),
            (b"'it\\'s \\n'", [b"it's \\n"]),
            (b'PING ""', [b"PING", b""]),
            (b"'' \"\"", [b"", b""]),
            (b"a\0b c", [b"a\0b", b"c"]),
            (b'"a"\vb', [b"a", b"b"]),
            (b"a\vb", [b"a\vb"]),
            (b"\xff\xfe", [b"\xff\xfe"]),
            (b"back\\slash", [b"back\\slash"]),
        ]
        for line, words in cases:
            self.assertEqual(words, split(line), line)

    def test_unbalanced(self) -> None:
        """An unterminated quote, or text right after a closing quote, is an error."""
        for line in (b'"', b"'", b'"a', b"a 'b", b'"a"b', b"'a'b", b"'a'\"b\"", b'"\\"', b'"\\'):
            self.assertIsNone(split(line), line)


class InverseTests(SynchronousTestCase):
    """``split`` reverses ``quote``."""

    @given(st.lists(st.binary(max_size=40), max_size=8))
    def test_quote_then_split(self, words: list[bytes]) -> None:
        """Any strings survive a configuration or nodes file."""
        self.assertEqual(words, split(b" ".join([quote(word) for word in words])))

    @given(st.binary(max_size=80))
    def test_quoted_is_one_printable_line(self, data: bytes) -> None:
        """A quoted string cannot break a line, a log, or a terminal."""
        self.assertTrue(all(32 <= byte < 127 for byte in quote(data)))

    @given(st.binary(max_size=80))
    def test_split_never_raises(self, line: bytes) -> None:
        """Whatever a stranger sends, the result is a list or ``None``."""
        words = split(line)
        self.assertTrue(words is None or all(isinstance(word, bytes) for word in words))

    def test_quote(self) -> None:
        """The escapes are those of MONITOR."""
        self.assertEqual(
            b'"a\\"\\\\\\n\\r\\t\\a\\b\\x00\\xff\\x7f~"', quote(b'a"\\\n\r\t\a\b\0\xff\x7f~')
        )
