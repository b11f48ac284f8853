"""Output formats of replies."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.cli.formatting import Style, formatted
from disque_tx.cli.replies import ErrorReply, Pairs, Reply, StatusReply

JOB: Reply = [[b"q", b"D-1", b'say "hi"\n'], None, 7]


def show(form: str, reply: Reply, *args: bytes) -> bytes:
    return Style(form).render(list(args) or [b"GETJOB"], reply)


class FormattedTests(SynchronousTestCase):
    """The format for people."""

    def test_scalars(self) -> None:
        """Each type is shown in a way that distinguishes it from the others."""
        cases: list[tuple[Reply, bytes]] = [
            (StatusReply(b"OK"), b"OK\n"),
            (ErrorReply(b"ERR no"), b"(error) ERR no\n"),
            (3, b"(integer) 3\n"),
            (None, b"(nil)\n"),
            (b'a"\n\x01', b'"a\\"\\n\\x01"\n'),
            ([], b"(empty list or set)\n"),
        ]
        for reply, expected in cases:
            self.assertEqual(expected, show("formatted", reply))

    def test_nested(self) -> None:
        """Nested arrays are indented by the width of their index plus two."""
        expected = b'1) 1) "q"\n   2) "D-1"\n   3) "say \\"hi\\"\\n"\n2) (nil)\n3) (integer) 7\n'
        self.assertEqual(expected, show("formatted", JOB))

    def test_wide_indexes(self) -> None:
        """From ten elements on, indexes are aligned to the right."""
        lines = show("formatted", [*range(9), [1, 2]]).split(b"\n")
        self.assertEqual(b" 1) (integer) 0", lines[0])
        self.assertEqual([b"10) 1) (integer) 1", b"    2) (integer) 2"], lines[9:11])

    def test_colour_only_when_asked(self) -> None:
        """Errors are red only on terminals."""
        self.assertEqual(
            b"\x1b[31m(error) ERR\x1b[0m\n", formatted(ErrorReply(b"ERR"), colour=True)
        )
        self.assertEqual(b"(error) ERR\n", formatted(ErrorReply(b"ERR")))

    @given(st.binary(), st.sampled_from((bytes, StatusReply, ErrorReply)))
    def test_no_control_bytes(self, text: bytes, kind: type[bytes]) -> None:
        """Control bytes in a reply never reach the terminal."""
        shown = formatted(kind(text))
        self.assertEqual([], [byte for byte in shown[:-1] if byte < 32 or byte == 127])


class RawTests(SynchronousTestCase):
    """The plain format."""

    def test_values(self) -> None:
        """Strings are printed unchanged, nil as nothing, and a reply ends with one newline."""
        self.assertEqual(b"a\x00\n", show("raw", b"a\x00"))
        self.assertEqual(b"5\n", show("raw", 5))
        self.assertEqual(b"\n", show("raw", None))
        self.assertEqual(b"ERR no\n\n", show("raw", ErrorReply(b"ERR no")))
        self.assertEqual(b'q\nD-1\nsay "hi"\n\n\n7\n', show("raw", JOB))

    def test_delimiter(self) -> None:
        """``-d`` separates the elements of flattened arrays."""
        style = Style("raw", b"|")
        self.assertEqual(b"1|2|3\n", style.render([b"X"], [1, [2, 3]]))

    def test_text_replies_in_every_format(self) -> None:
        """INFO and similar replies are printed unchanged, without an extra newline."""
        for words in ((b"info",), (b"Cluster", b"nodes"), (b"CLIENT", b"LIST")):
            for form in ("raw", "csv", "formatted"):
                self.assertEqual(b"a:1\r\n", show(form, b"a:1\r\n", *words))
        self.assertEqual(b'"abc"\n', show("formatted", b"abc", b"CLUSTER", b"MYID"))


class CsvTests(SynchronousTestCase):
    """The comma separated format."""

    def test_values(self) -> None:
        """Arrays are flattened, nil is NIL, and errors are marked."""
        self.assertEqual(b'"q","D-1","say \\"hi\\"\\n",NIL,7\n', show("csv", JOB))
        self.assertEqual(b'"OK"\n', show("csv", StatusReply(b"OK")))
        self.assertEqual(b'ERROR,"ERR no"\n', show("csv", ErrorReply(b"ERR no")))


class JsonTests(SynchronousTestCase):
    """The format for programs."""

    def test_values(self) -> None:
        """A reply is one JSON document on one line."""
        shown = show("json", [b"h\xc3\xa9\n", 1, None, [StatusReply(b"OK")]])
        self.assertEqual(["hé\n", 1, None, ["OK"]], json.loads(shown))
        self.assertEqual(1, shown.count(b"\n"))

    def test_binary(self) -> None:
        """A string that is not UTF-8 is encoded as base64."""
        self.assertEqual({"base64": "/wA="}, json.loads(show("json", b"\xff\x00")))

    def test_error(self) -> None:
        """A program can distinguish an error from a string."""
        self.assertEqual({"error": "ERR no"}, json.loads(show("json", ErrorReply(b"ERR no"))))

    def test_info_too(self) -> None:
        """INFO and similar replies are JSON strings, too."""
        self.assertEqual("a:1\r\n", json.loads(show("json", b"a:1\r\n", b"INFO")))

    def test_map(self) -> None:
        """A map becomes an object."""
        self.assertEqual({"len": 3}, json.loads(show("json", Pairs([b"len", 3]))))
