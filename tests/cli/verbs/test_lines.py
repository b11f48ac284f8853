"""Jobs as lines of text or JSON."""

from __future__ import annotations

import base64
import json

import attrs
from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.cli.verbs.jobs.lines import (
    JobLine,
    NotAJob,
    as_body,
    as_json,
    as_readable,
    as_text,
    parsed,
)
from disque_tx.client.options import AddOptions
from disque_tx.client.values import Job
from tests.client.test_options import details

_VALUES = st.none() | st.integers() | st.text() | st.just({"base64": "eA=="}) | st.just(5)
_NAMES = st.sampled_from(["queue", "id", "body", "retry", "ttl", "replicate"])
_OBJECTS = st.dictionaries(_NAMES, _VALUES).map(lambda value: json.dumps(value).encode())


class LineTests(SynchronousTestCase):
    """``as_json``, ``as_text`` and ``as_body``."""

    @given(st.text(), st.binary())
    def test_json_is_whole(self, queue: str, body: bytes) -> None:
        """Any job can be restored from its line of JSON."""
        line = as_json(Job(queue, "D-1", body))
        self.assertEqual(1, line.count(b"\n"))
        found = json.loads(line)
        shown = found["body"]
        whole = base64.b64decode(shown["base64"]) if isinstance(shown, dict) else shown.encode()
        self.assertEqual((queue, "D-1", body), (found["queue"], found["id"], whole))

    @given(st.text(), st.binary(), st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1))
    def test_inverse(self, queue: str, body: bytes, retry_s: int, ttl_s: int) -> None:
        """``fill`` reads what ``drain`` writes, without loss; an expired TTL becomes one second."""
        known = attrs.evolve(details(1, retry_s, 0.0), ttl_s=ttl_s, replicate=3)
        found = parsed(as_json(Job(queue, "D-1", body, 1, 2), known))
        terms = AddOptions(retry_s=retry_s, ttl_s=max(1, ttl_s), replicate=3)
        self.assertEqual(JobLine(queue, "D-1", body, terms), found)

    @given(st.binary() | st.text().map(str.encode) | _OBJECTS)
    def test_no_jobs(self, line: bytes) -> None:
        """Any line is either a job that can be added, or refused as malformed."""
        try:
            found = parsed(line)
        except NotAJob:
            return
        found.queue.encode("utf-8", "surrogateescape")
        self.assertIsInstance(found.body, bytes)
        options = found.options
        for number in (options.retry_s, options.ttl_s, options.replicate):
            self.assertTrue(number is None or (type(number) is int and number >= 0))

    @given(st.text())
    def test_readable(self, text: str) -> None:
        """On a terminal, letters of any language are shown, and control or invisible characters are
        escaped."""
        line = as_readable(Job("q", "D-1", text.encode("utf-8", "replace"))).decode()
        self.assertTrue(line.endswith("\n"))
        self.assertTrue(line[:-1].isprintable())

    def test_readable_examples(self) -> None:
        """Bytes that are not text are all escaped."""
        for body, shown in (
            ("grüße 你好".encode(), '"grüße 你好"'),
            (b'a"\\\n\x1b[2J', '"a\\"\\\\\\n\\x1b[2J"'),
            ("\u202e".encode(), '"\\xe2\\x80\\xae"'),
            (b"\xc3", '"\\xc3"'),
        ):
            self.assertEqual(f"D-1 {shown}\n".encode(), as_readable(Job("q", "D-1", body)))

    @given(st.binary())
    def test_text_is_harmless(self, body: bytes) -> None:
        """A job can contain nothing that controls the terminal."""
        line = as_text(Job("q", "D-1", body))
        self.assertTrue(line.endswith(b"\n"))
        self.assertTrue(line[:-1].decode("ascii").isprintable())

    def test_queue_of_any_bytes(self) -> None:
        """A queue name that is not UTF-8 can be written, too."""
        self.assertIn(b'"\\udcff"', as_json(Job("\udcff", "D-1", b"")))

    def test_body(self) -> None:
        """Bodies alone are written unchanged."""
        self.assertEqual(b"\xff\x00\n", as_body(Job("q", "D-1", b"\xff\x00")))
