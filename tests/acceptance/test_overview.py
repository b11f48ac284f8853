"""Conversations about queues, byte for byte, in both versions of RESP."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.acceptance.daemon import DaemonTestCase
from tests.acceptance.resp import Connection

VECTORS = Path(__file__).resolve().parents[1] / "vectors" / "overview.json"
_PART = re.compile(r"<(.*?)>")


class ConversationTests(DaemonTestCase):
    """One client and a new daemon."""

    def replay(self, client: Connection, version: int) -> None:
        """All steps, in order."""
        job_id = ""
        for step in json.loads(VECTORS.read_text())["steps"]:
            client.send(*[word.replace("${id}", job_id) for word in step["send"]])
            reply = client.read_raw().decode()
            expected = step.get("resp3", step["resp2"]) if version == 3 else step["resp2"]
            if "${id}" in expected:
                job_id = reply[1:41]
                continue
            parts = _PART.split(expected)
            pattern = "".join(
                part if place % 2 else re.escape(part) for place, part in enumerate(parts)
            )
            self.assertTrue(re.fullmatch(pattern, reply, re.DOTALL), (step["send"], reply))

    def test_resp2(self) -> None:
        """Clients of the original get arrays of names and values."""
        self.replay(self.running().client(), 2)

    def test_resp3(self) -> None:
        """Clients of Redis get maps."""
        client = self.running().client()
        client.call("HELLO", 3)
        self.replay(client, 3)
