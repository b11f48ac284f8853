"""Commands that the original does not have: every form and every error, as written by hand.

Every file has a daemon of its own, and one connection. A text file holds requests and replies of
one version of RESP; the steps of a JSON file are replayed in both. There ``<...>`` is a regular
expression, and ``${name}`` the ID of a job, known from the first reply that has it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from disque_tx.text.quoting import split
from tests.acceptance.daemon import DaemonTestCase
from tests.acceptance.resp import Connection

FOLDER = Path(__file__).resolve().parents[1] / "vectors" / "own"
#: A reply that depends on the node.
ANY = b"..."
_PART = re.compile(r"<(.*?)>|\$\{(\w+)\}", re.DOTALL)
_ID = "D-.{38}"


def steps(file: Path) -> Iterator[tuple[int, list[bytes], bytes]]:
    """The requests of a file: line number, words, and the reply."""
    number, words, reply = 0, list[bytes](), list[bytes]()
    for place, line in enumerate(file.read_bytes().split(b"\n"), 1):
        if line.startswith(b"> "):
            if words:
                yield number, words, b"\r\n".join(reply)
            number, words, reply = place, split(line[2:]) or [], []
        elif line.startswith(b"< "):
            reply.append(line[2:])
    yield number, words, b"\r\n".join(reply)


class Conversation:
    """The steps of a JSON file. ``failures``: requests whose reply differs."""

    def __init__(self, connection: Connection, version: int) -> None:
        self._connection = connection
        self._version = version
        self._known: dict[str, str] = {}
        self.failures: list[str] = []

    def step(self, step: dict[str, Any]) -> None:
        """Send one request, and compare its reply."""
        words = [_PART.sub(lambda found: self._known[found[2]], word) for word in step["send"]]
        self._connection.send(*[word.encode() for word in words])
        reply = self._connection.read_raw().decode()
        expected = step.get("resp3", step["resp2"]) if self._version == 3 else step["resp2"]
        match = re.fullmatch(self._pattern(expected), reply, re.DOTALL)
        if match is None:
            self.failures.append(f"{words}: {reply!r} instead of {expected!r}")
        else:
            self._known |= match.groupdict()

    def _pattern(self, expected: str) -> str:
        pattern, at = "", 0
        for found in _PART.finditer(expected):
            pattern += re.escape(expected[at : found.start()])
            at = found.end()
            name = found[2]
            if name is None:
                pattern += found[1]
            elif name in self._known:
                pattern += re.escape(self._known[name])
            else:
                pattern += f"(?P<{name}>{_ID})"
        return pattern + re.escape(expected[at:])


class OwnTranscriptTests(DaemonTestCase):
    """Clients rely on these replies, byte for byte."""

    def test_all_files(self) -> None:
        """A client that follows the documentation understands every reply."""
        files = sorted(FOLDER.glob("*.txt"))
        failures: list[str] = []
        for file in files:
            connection = self.running().client()
            for number, words, reply in steps(file):
                connection.send(*words)
                found = connection.read_raw().removesuffix(b"\r\n")
                if reply not in (ANY, found):
                    failures.append(f"{file.name}:{number}: {words}: {found!r}")
        self.assertEqual([], failures)
        self.assertNotEqual([], files)

    def replay(self, version: int) -> list[str]:
        """All JSON files in this version; the failures."""
        failures: list[str] = []
        for file in sorted(FOLDER.glob("*.json")):
            connection = self.running().client()
            connection.call("HELLO", version)
            conversation = Conversation(connection, version)
            for step in json.loads(file.read_text())["steps"]:
                conversation.step(step)
            failures += [f"{file.name}: {failure}" for failure in conversation.failures]
        return failures

    def test_resp2(self) -> None:
        """Clients of the original get arrays of names and values."""
        self.assertEqual([], self.replay(2))

    def test_resp3(self) -> None:
        """Clients of Redis get maps."""
        self.assertEqual([], self.replay(3))
