"""Jobs as lines."""

from __future__ import annotations

import base64
import json

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.cli.joblines import as_body, as_json, as_text
from disque_tx.client.values import Job


class LineTests(SynchronousTestCase):
    """``as_json``, ``as_text`` and ``as_body``."""

    @given(st.text(), st.binary())
    def test_json_is_whole(self, queue: str, body: bytes) -> None:
        """Whatever a job holds, a program gets it back from one line."""
        line = as_json(Job(queue, "D-1", body))
        self.assertEqual(1, line.count(b"\n"))
        found = json.loads(line)
        shown = found["body"]
        whole = base64.b64decode(shown["base64"]) if isinstance(shown, dict) else shown.encode()
        self.assertEqual((queue, "D-1", body), (found["queue"], found["id"], whole))

    @given(st.binary())
    def test_text_is_harmless(self, body: bytes) -> None:
        """A terminal obeys nothing that a stranger put into a job."""
        line = as_text(Job("q", "D-1", body))
        self.assertTrue(line.endswith(b"\n"))
        self.assertTrue(line[:-1].decode("ascii").isprintable())

    def test_queue_of_any_bytes(self) -> None:
        """A name that is not UTF-8 makes a line too."""
        self.assertIn(b'"\\udcff"', as_json(Job("\udcff", "D-1", b"")))

    def test_body(self) -> None:
        """Bodies alone are unchanged."""
        self.assertEqual(b"\xff\x00\n", as_body(Job("q", "D-1", b"\xff\x00")))
