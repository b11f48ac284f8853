"""The finished files of event logs."""

from __future__ import annotations

from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.services.events.finished import FinishedFiles

_DAY = "dt=2026-11-26"


def _file(number: int, node: str = "3c0f1d52") -> str:
    return f"events-{node}-1790000000000-{number:012d}.jsonl.zst"


class FinishedTests(SynchronousTestCase):
    """``FinishedFiles``."""

    def setUp(self) -> None:
        self.folders = [Path(self.mktemp()), Path(self.mktemp())]

    def put(self, name: str, data: bytes = b"x", folder: int = 0) -> str:
        """A file in one of the folders."""
        path = self.folders[folder] / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return name

    def names(self, after: str = "") -> list[str]:
        """Those that are listed."""
        steps = FinishedFiles(map(str, self.folders)).listed(after)
        return [name for step in steps for name, _size in step]

    def test_listed(self) -> None:
        """Whoever asks again for what is behind the last name, or the last hour, gets what is new,
        of all processes, hour by hour."""
        first = self.put(f"{_DAY}/hour=17/{_file(0)}")
        other = self.put(f"{_DAY}/hour=17/{_file(0, 'ffff0000')}", folder=1)
        later = self.put(f"{_DAY}/hour=18/{_file(7)}")
        last = self.put(f"dt=2026-12-01/hour=00/{_file(9)}", folder=1)
        self.assertEqual([first, other, later, last], self.names())
        self.assertEqual([other, later, last], self.names(first))
        self.assertEqual([later, last], self.names(f"{_DAY}/hour=18"))
        self.assertEqual([last], self.names("dt=2026-11-27"))
        self.assertEqual([], self.names(last))

    def test_sizes(self) -> None:
        """Each has its size, in bytes, and many files are many steps."""
        for number in range(250):
            self.put(f"{_DAY}/hour=17/{_file(number)}", b"x" * number)
        steps = list(FinishedFiles([str(self.folders[0])]).listed(""))
        self.assertEqual(list(range(250)), [size for step in steps for _name, size in step])
        self.assertGreater(len(steps), 2)

    def test_others(self) -> None:
        """What is not finished, or is no file of the log, is neither listed nor opened."""
        for name in (
            f"{_DAY}/hour=17/_tmp-{_file(0)}", f"{_DAY}/hour=17/notes.txt",
            "_open-3c0f1d52-1790000000000-000000000000.events", f"dt=x/hour=17/{_file(0)}",
            f"{_DAY}/{_file(0)}", "secret",
        ):  # fmt: skip
            self.put(name)
        self.assertEqual([], self.names())
        inside = f"{_DAY}/hour=17"
        for name in (
            "secret", "../secret", f"{inside}/../../secret", f"{inside}/notes.txt", "",
            f"{inside}/../hour=17/{_file(0)}", f"/{inside}/{_file(0)}", f"{inside}/{_file(0)}\0",
        ):  # fmt: skip
            self.assertRaises(FileNotFoundError, self.opened, name)

    def opened(self, name: str) -> bytes:
        """What is in a file."""
        with FinishedFiles(map(str, self.folders)).open(name) as file:
            return file.read()

    def test_opened(self) -> None:
        """A file is found in the folder that has it; one that was removed is not there."""
        name = self.put(f"{_DAY}/hour=17/{_file(3)}", b"events", folder=1)
        self.assertEqual(b"events", self.opened(name))
        (self.folders[1] / name).unlink()
        self.assertRaises(FileNotFoundError, self.opened, name)

    def test_no_folder(self) -> None:
        """Before the first event there is no folder."""
        self.assertEqual([], self.names())
