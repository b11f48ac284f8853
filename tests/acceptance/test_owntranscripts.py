"""Commands that the original does not have: every form and every error, as written by hand.

Every file has a daemon of its own, and one connection.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from disque_tx.quoting import split
from tests.acceptance.daemon import DaemonTestCase

FOLDER = Path(__file__).resolve().parents[1] / "vectors" / "own"
#: A reply that depends on the node.
ANY = b"..."


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
