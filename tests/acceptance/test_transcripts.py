"""All conversations that were recorded with Disque 1.0-rc1, replayed with this daemon.

One new daemon and one set of variables serve all of them, in their order; connections stay open
from one session to the next, as they did during the recording.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from tests.acceptance.daemon import Daemon, DaemonTestCase
from tests.acceptance.resp import ClosedError, Connection, parse

VECTORS = Path(__file__).resolve().parents[1] / "vectors" / "transcripts.json"
_VARIABLE = re.compile(r"\$\{(\w+)\}")
#: The part in which job IDs differ; the TTL at the end does not.
_UNIQUE = re.compile(rb"D-[0-9a-f]{8}-[A-Za-z0-9+/]{24}-")

_HELLO = (
    r"\*3\r\n:1\r\n\$40\r\n(.{40})\r\n"
    r"\*4\r\n\$40\r\n\1\r\n\$9\r\n127\.0\.0\.1\r\n\$\d+\r\n\d+\r\n\$%d\r\n%d\r\n"
)
#: Where the daemon differs from the original at the request of users: HELLO shows the node's own
#: address, CLUSTER MEET accepts host names, and there are more commands.
INTENDED = {
    "basics[20]": r":\d+\r\n",
    "cluster[1]": _HELLO % (1, 1),
    "leaving[7]": _HELLO % (3, 100),
    "cluster[7]": r"\+OK\r\n",
}


def as_set(reply: bytes) -> Any:
    """A reply with its arrays sorted and its job IDs reduced to their TTL."""
    return deep_sorted(parse(_UNIQUE.sub(bytes(36), reply))[0])


def deep_sorted(value: Any) -> Any:
    """Nested arrays, each sorted by the text of its elements."""
    return sorted(map(deep_sorted, value), key=repr) if isinstance(value, list) else value


class Replay:
    """A conversation with one daemon. ``failures``: replies that differ from the recording."""

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon
        self._connections: dict[str, Connection] = {}
        self.variables = {"port": str(daemon.port)}
        self.failures: list[str] = []

    def step(self, session: str, number: int, step: dict[str, Any]) -> None:
        """Run one step and compare the reply."""
        if step["conn"] not in self._connections:
            self._connections[step["conn"]] = self._daemon.client()
        connection = self._connections[step["conn"]]
        self._send(connection, step)
        if step["op"] == "send":
            return
        where = f"{session}[{number}] {step.get('args') or step.get('request_hex', 'recv')}"
        try:
            reply = b"".join(connection.read_raw() for _ in range(step.get("expect_replies", 1)))
        except (ClosedError, TimeoutError) as error:
            self.failures.append(f"{where}: {error!r} instead of {step['reply_text']!r}")
            return
        self._compare(where, reply, step)
        if where.startswith("cluster[7]"):
            # Names are resolved in the background: wait for that before the table is cleared again.
            while b"handshake" not in reply:
                connection.send(b"CLUSTER", b"NODES")
                reply = connection.read_raw()
        if step.get("closed_after") and not connection.closed():
            self.failures.append(f"{where}: the connection was not closed")

    def _send(self, connection: Connection, step: dict[str, Any]) -> None:
        if step["op"] == "raw":
            connection.send_raw(bytes.fromhex(step["request_hex"]))
        elif step["op"] != "recv":
            words = [_VARIABLE.sub(self._value, word) for word in step["args"]]
            connection.send(*[word.encode("latin-1") for word in words])

    def _value(self, found: re.Match[str]) -> str:
        return self.variables[found[1]]

    def _compare(self, where: str, reply: bytes, step: dict[str, Any]) -> None:
        if step.get("unordered"):
            mine, theirs = as_set(reply), as_set(bytes.fromhex(step["reply_hex"]))
            if mine != theirs:
                self.failures.append(f"{where}: {mine} instead of {theirs}")
            return
        pattern = INTENDED.get(where.split(" ", maxsplit=1)[0], step["reply_pattern"])
        pattern = _VARIABLE.sub(lambda found: re.escape(self._value(found)), pattern)
        text = reply.decode("latin-1")
        match = re.fullmatch(pattern, text, re.DOTALL)
        if match is None:
            self.failures.append(f"{where}: {text!r} does not match {pattern!r}")
        else:
            self.variables.update(match.groupdict())


class TranscriptTests(DaemonTestCase):
    """Clients of the original rely on these replies, byte for byte."""

    def test_all_sessions(self) -> None:
        """A client that works with the original sees no difference."""
        replay = Replay(self.running())
        steps = 0
        for session in json.loads(VECTORS.read_text())["sessions"]:
            for number, step in enumerate(session["steps"]):
                replay.step(session["name"], number, step)
                steps += 1
        self.assertEqual([], replay.failures)
        self.assertEqual(310, steps)
