"""The forms and errors of NACK and QMOVE, written by hand, replayed in both protocols."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.acceptance.daemon import DaemonTestCase

VECTORS = Path(__file__).resolve().parents[1] / "vectors" / "retries.json"
_VARIABLE = re.compile(r"\$\{(\w+)\}")
_NEW_ID = re.compile(r"\(\?P<(\w+)>D-\.\{38\}\)")
_NULLS = {"NULL": (b"*-1\r\n", b"_\r\n"), "NIL": (b"$-1\r\n", b"_\r\n")}


class RetryTranscriptTests(DaemonTestCase):
    """Clients in any language rely on these replies, byte for byte."""

    def _replay(self, version: int) -> list[str]:
        """The steps whose reply differs, in RESP2 or RESP3."""
        connection = self.running().client()
        connection.send(b"HELLO", b"%d" % version)
        connection.read_raw()
        known: dict[str, str] = {}
        failures = []
        for words, wanted in json.loads(VECTORS.read_text())["steps"]:
            sent = [_VARIABLE.sub(lambda found: known[found[1]], word) for word in words]
            connection.send(*[word.encode() for word in sent])
            reply = connection.read_raw()
            if wanted in _NULLS:
                matched = reply == _NULLS[wanted][version - 2]
            elif wanted is not None and (name := _NEW_ID.search(wanted)) is not None:
                match = re.fullmatch(rb"\+(D-.{38})\r\n", reply)
                matched = match is not None
                known[name[1]] = match[1].decode() if match is not None else ""
            else:
                matched = wanted is None or reply == wanted.encode()
            if not matched:
                failures.append(f"{sent}: {reply!r} instead of {wanted!r}")
        return failures

    def test_resp2(self) -> None:
        """In RESP2."""
        self.assertEqual([], self._replay(2))

    def test_resp3(self) -> None:
        """In RESP3."""
        self.assertEqual([], self._replay(3))
