"""The files of the event log, by HTTP."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

from disque_tx.protocols.http.server.slices import SLICE_BYTES
from tests.protocols.http.api.queues.test_queues import SlicedCase

_PATH = "/api/v1/events/files"
_PLACE = "dt=2026-11-26/hour=17"


class EventFileTests(SlicedCase):
    """List and files."""

    def log(self, *contents: bytes) -> list[str]:
        """A log with files of these contents; their names."""
        folder = Path(self.mktemp())
        (folder / _PLACE).mkdir(parents=True)
        self.settings.eventlog, self.settings.eventlog_dir = True, str(folder)
        names = []
        for number, content in enumerate(contents):
            name = f"{_PLACE}/events-3c0f1d52-1790000000000-{number:012d}.jsonl.zst"
            (folder / name).write_bytes(content)
            names.append(name)
        return names

    def test_list(self) -> None:
        """The list is read page by page, and then from the last name on."""
        names = self.log(b"a", b"bb", b"ccc")
        rows = [{"name": name, "bytes": size} for size, name in enumerate(names, 1)]
        answer = self.slow("GET", _PATH).json
        self.assertEqual({"files": rows, "log": True, "next": None}, answer)
        answer = self.slow("GET", f"{_PATH}?limit=2").json
        self.assertEqual((rows[:2], names[1]), (answer["files"], answer["next"]))
        answer = self.slow("GET", f"{_PATH}?after={quote(names[1], safe='')}").json
        self.assertEqual((rows[2:], None), (answer["files"], answer["next"]))

    def test_off(self) -> None:
        """Without the log there are no files, and the answer says why."""
        answer = self.slow("GET", _PATH).json
        self.assertEqual({"files": [], "log": False, "next": None}, answer)
        self.problem(404, "NOFILE", self.http("GET", f"{_PATH}/x"))

    def test_file(self) -> None:
        """A file is sent as it is, however long it is."""
        long = bytes(range(256)) * (SLICE_BYTES // 100)
        names = self.log(b"short", long, b"")
        for name, content in zip(names, (b"short", long, b""), strict=True):
            answer = self.slow("GET", f"{_PATH}/{quote(name, safe='')}")
            self.assertEqual((200, content), (answer.status, answer.body))

    def test_no_file(self) -> None:
        """Whatever is no file of the log is not there, and nothing else of the disk is read."""
        self.log(b"x")
        for name in ("../../../etc/passwd", "/etc/passwd", _PLACE, "x", f"{_PLACE}/\x00"):
            self.problem(404, "NOFILE", self.http("GET", f"{_PATH}/{quote(name, safe='')}"))
