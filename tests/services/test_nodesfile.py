"""The nodes file on a real disk."""

from __future__ import annotations

import os
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.errors import ConfigError
from disque_tx.nodetable import MYSELF, NodeEntry
from disque_tx.services.nodesfile import SIZE_BYTES_MAX, NodesFile

ME = b"a" * 40
LINE = ME + b" :7711 myself 0 0 connected\n"


def rows(others: int) -> list[NodeEntry]:
    """This node and some others."""
    peers = [NodeEntry(b"%040d" % number, b"::1", 7711, 0, 0) for number in range(others)]
    return [NodeEntry(ME, b"", 7711, MYSELF, 0), *peers]


class NodesFileTests(SynchronousTestCase):
    """Locking, loading and saving."""

    def setUp(self) -> None:
        self.path = Path(self.mktemp())
        self.file = NodesFile(str(self.path))
        self.addCleanup(self.file.close)

    def test_new(self) -> None:
        """A file that is missing, or was only just created by locking it, describes nobody."""
        self.assertEqual([], self.file.load(1, 0))
        self.file.lock()
        self.assertEqual([], self.file.load(1, 0))
        self.assertEqual(0o644 & ~_umask(), self.path.stat().st_mode & 0o777)

    def test_lock_excludes(self) -> None:
        """Two nodes never share one identity, and the second one says why it does not start."""
        self.file.lock()
        second = NodesFile(str(self.path))
        self.addCleanup(second.close)
        with self.assertRaises(ConfigError) as caught:
            second.lock()
        self.assertEqual(
            f"The nodes file {self.path.absolute()} is in use by another node. "
            "Give every node its own 'dir' or 'cluster-config-file'.",
            str(caught.exception),
        )
        self.file.close()
        second.lock()

    def test_lock_survives_saving(self) -> None:
        """Writing in place keeps the file that carries the lock."""
        self.file.lock()
        inode = self.path.stat().st_ino
        self.file.save(rows(1), sync=True)
        self.assertEqual(inode, self.path.stat().st_ino)
        with self.assertRaises(ConfigError):
            NodesFile(str(self.path)).lock()

    def test_save_and_load(self) -> None:
        """A restart finds the table again."""
        self.file.save(rows(2), sync=True)
        loaded = self.file.load(1, 0)
        self.assertEqual([entry.line() for entry in rows(2)], [entry.line() for entry in loaded])

    def test_shrinks(self) -> None:
        """Nothing of a longer old content stays behind."""
        self.file.save(rows(9), sync=False)
        self.file.save(rows(0), sync=False)
        self.assertEqual(LINE, self.path.read_bytes())

    def test_damaged(self) -> None:
        """The operator learns file, line and reason, and the damaged file stays as it is."""
        damaged = LINE + b"rubbish\n"
        self.path.write_bytes(damaged)
        with self.assertRaises(ConfigError) as caught:
            self.file.load(1, 0)
        self.assertEqual(
            f"Unrecoverable error: corrupted cluster config file {self.path.absolute()}: "
            "line 2: 1 fields instead of 6. "
            "Repair the file, or move it away to start as a new node.",
            str(caught.exception),
        )
        self.assertEqual(damaged, self.path.read_bytes())

    def test_too_large(self) -> None:
        """A file that cannot be a nodes file is not read into memory."""
        self.path.touch()
        os.truncate(self.path, SIZE_BYTES_MAX + 1)
        with self.assertRaisesRegex(ConfigError, "larger than"):
            self.file.load(1, 0)

    def test_no_folder(self) -> None:
        """A wrong folder is reported as what it is, by locking and by saving."""
        file = NodesFile(str(self.path / "missing" / "nodes.conf"))
        with self.assertRaisesRegex(ConfigError, "Can't open the nodes file .*No such file"):
            file.lock()
        with self.assertRaises(FileNotFoundError):
            file.save(rows(0), sync=False)

    def test_unreadable(self) -> None:
        """Something else under that name is refused instead of being taken for a new node."""
        self.path.mkdir()
        with self.assertRaisesRegex(ConfigError, "Can't read the nodes file .*Is a directory"):
            self.file.load(1, 0)

    def test_path_is_fixed(self) -> None:
        """Changing the working folder at run time does not move the file."""
        before = os.getcwd()
        self.addCleanup(os.chdir, before)
        elsewhere = self.mktemp()
        os.mkdir(elsewhere)
        os.chdir(elsewhere)
        self.file.save(rows(0), sync=False)
        os.chdir(before)
        self.assertEqual(LINE, self.path.read_bytes())

    def test_close_twice(self) -> None:
        """Closing is safe on every way out of the process."""
        self.file.lock()
        self.file.close()
        self.file.close()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
