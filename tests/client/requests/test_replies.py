"""Replies parsed into values: those of the original daemon, and invalid ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import hiredis
from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.client.errors import BY_CODE, Refused, refusal
from disque_tx.client.requests import replies
from disque_tx.client.values import JobProgress

_VECTORS: Final = Path(__file__).resolve().parents[2] / "vectors" / "transcripts.json"
_SHAPES: Final[dict[str, Any]] = {
    "ACKJOB": replies.integer,
    "ADDJOB": replies.job_id,
    "DELJOB": replies.integer,
    "DEQUEUE": replies.integer,
    "ENQUEUE": replies.integer,
    "FASTACK": replies.integer,
    "GETJOB": replies.jobs,
    "HELLO": replies.hello,
    "INFO": replies.lines,
    "NACK": replies.integer,
    "PAUSE": replies.text,
    "PING": replies.text,
    "QLEN": replies.integer,
    "QPEEK": replies.jobs,
    "QSCAN": replies.names,
    "QSTAT": replies.stat,
    "SHOW": replies.details,
    "WORKING": replies.integer,
    "CLUSTER MYID": replies.text,
    "CLUSTER NODES": replies.cluster_nodes,
    "CLUSTER INFO": replies.lines,
}
_BYTES: Final = st.binary(max_size=50)
_REPLIES: Final = st.recursive(
    st.none() | st.integers() | _BYTES | st.booleans() | st.floats() | st.builds(Exception),
    lambda inner: st.lists(inner, max_size=8) | st.dictionaries(_BYTES, inner, max_size=4),
    max_leaves=12,
)


def recorded() -> dict[str, list[tuple[list[str], Any]]]:
    """Command → requests and parsed replies of the original daemon."""
    found: dict[str, list[tuple[list[str], Any]]] = {}
    for session in json.loads(_VECTORS.read_text())["sessions"]:
        for step in session["steps"]:
            words = step.get("args")
            if step["op"] != "call" or not words or not isinstance(words[0], str):
                continue
            reader = hiredis.Reader()
            reader.feed(bytes.fromhex(step["reply_hex"]))
            name = " ".join(words[:2]) if words[0] == "CLUSTER" else words[0].upper()
            found.setdefault(name, []).append((words, reader.gets()))
    return found


class RecordedTests(SynchronousTestCase):
    """Real replies."""

    def test_all(self) -> None:
        """Every recorded reply becomes a value, or an error with its code."""
        everything = recorded()
        for name, shape in _SHAPES.items():
            self.assertIn(name, everything)
            for words, reply in everything[name]:
                if isinstance(reply, Exception):
                    refused = refusal(name, "n:1", str(reply))
                    self.assertEqual(str(reply).split(" ")[0], refused.code)
                else:
                    self.assertIsNotNone(words, shape(reply))

    def test_details(self) -> None:
        """The fields of SHOW are assigned correctly."""
        shown = replies.details(next(reply for _, reply in recorded()["SHOW"][1:]))
        assert shown is not None
        self.assertEqual(("D-6a8db796", "qa", "queued"), (shown.id[:10], shown.queue, shown.state))
        self.assertEqual((1, 300, 0), (shown.replicate, shown.retry_s, shown.nacks))
        self.assertEqual(1, len(shown.nodes_delivered))

    def test_progress(self) -> None:
        """How far a job is, is read where a node says so; what is no fraction is no reply."""
        plain = next(reply for _, reply in recorded()["SHOW"][1:])
        shown = replies.details(plain)
        assert shown is not None
        self.assertIsNone(shown.progress)
        more = [b"progress-note", b"page \xff", b"progress-age", 1500]
        shown = replies.details([*plain, b"progress", b"0.4", *more])
        assert shown is not None
        self.assertEqual(JobProgress(0.4, "page \ufffd", 1500), shown.progress)
        for bad in (b"x", b"nan", b"1e999", b"-1", 1):
            fields = [*plain, b"progress", bad, *more]
            self.assertRaises(replies.MalformedReply, replies.details, fields)

    def test_jscan(self) -> None:
        """JSCAN with REPLY all returns the same values as SHOW."""
        pages = [
            replies.descriptions(reply)
            for words, reply in recorded()["JSCAN"]
            if [word.upper() for word in words[-2:]] == ["REPLY", "ALL"]
        ]
        self.assertTrue(pages and all(cursor == 0 and items for cursor, items in pages))

    def test_codes(self) -> None:
        """Each error code has a class, and each class says what to do."""
        for code, kind in BY_CODE.items():
            error = refusal("X", "n:1", f"{code} some\x07thing")
            self.assertIs(kind, type(error))
            self.assertIn(kind.advice, str(error))
            self.assertTrue(kind.advice and str(error).isprintable())
        self.assertIs(Refused, type(refusal("X", "n:1", "MYERR text")))


class InvalidTests(SynchronousTestCase):
    """Replies that no node sends."""

    @given(_REPLIES)
    def test_anything(self, reply: Any) -> None:
        """Every reply becomes a value or raises MalformedReply; no other exception is raised."""
        for shape in _SHAPES.values():
            try:
                shape(reply)
            except replies.MalformedReply:
                pass

    def test_map(self) -> None:
        """RESP3 may send fields as a map."""
        flat = next(reply for words, reply in recorded()["QSTAT"] if words[1] == "qs")
        as_map = dict(zip(flat[::2], flat[1::2], strict=True))
        self.assertEqual(replies.stat(flat), replies.stat(as_map))

    def test_binary_names(self) -> None:
        """A name that is not UTF-8 can be sent back unchanged."""
        name = replies.text(b"q\xff")
        self.assertEqual(b"q\xff", name.encode("utf-8", "surrogateescape"))
