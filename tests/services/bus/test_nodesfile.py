"""The nodes file on a real disk."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.errors import ConfigError
from disque_tx.messages.nodes import MYSELF, NodeEntry
from disque_tx.services.bus.nodesfile import SIZE_BYTES_MAX, NodesFile
from tests.services.rootbench import RootCase

ME = b"a" * 40
UNIX_S = 1_795_000_000
UNIX_MS = UNIX_S * 1000
LINE = ME + b" :7711 myself 0 0 connected\n"


def rows(others: int) -> list[NodeEntry]:
    """Entries for this node and some others."""
    peers = [NodeEntry(b"%040d" % number, b"::1", 7711, 0, 0) for number in range(others)]
    return [NodeEntry(ME, b"", 7711, MYSELF, 0), *peers]


class NodesFileTests(SynchronousTestCase):
    """Locking, loading and saving."""

    def setUp(self) -> None:
        self.path = Path(self.mktemp())
        self.file = NodesFile(str(self.path))
        self.addCleanup(self.file.close)
        self.warnings: list[str] = []

    def load(self) -> list[NodeEntry]:
        """Read the file; messages for the operator go to ``warnings``."""
        return self.file.load(UNIX_S, 0, self.warnings.append)

    def test_new(self) -> None:
        """A file that is missing, or was just created by locking it, contains no nodes."""
        self.assertEqual([], self.load())
        self.file.lock()
        self.assertEqual([], self.load())
        self.assertEqual(0o644 & ~_umask(), self.path.stat().st_mode & 0o777)

    def test_lock_excludes(self) -> None:
        """Two nodes never share one ID, and the second one's error says why it does not start."""
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
        """Writing in place keeps the file that is locked."""
        self.file.lock()
        inode = self.path.stat().st_ino
        self.file.save(rows(1), UNIX_MS, sync=True)
        self.assertEqual(inode, self.path.stat().st_ino)
        with self.assertRaises(ConfigError):
            NodesFile(str(self.path)).lock()

    def test_new_name_is_synced(self) -> None:
        """A new node's ID must survive a power failure, and so must the name of its file."""
        folders: list[bool] = []
        sync = os.fsync

        def noted(fd: int) -> None:
            folders.append(stat.S_ISDIR(os.fstat(fd).st_mode))
            sync(fd)

        self.patch(os, "fsync", noted)
        self.file.save(rows(1), UNIX_MS, sync=True)
        self.assertEqual([False, True], folders)

    def test_save_and_load(self) -> None:
        """A restarted node loads the same table."""
        self.file.save(rows(2), UNIX_MS, sync=True)
        loaded = self.load()
        self.assertEqual([e.line(UNIX_MS) for e in rows(2)], [e.line(UNIX_MS) for e in loaded])

    def test_shrinks(self) -> None:
        """Nothing of longer old content remains."""
        self.file.save(rows(9), UNIX_MS, sync=False)
        self.file.save(rows(0), UNIX_MS, sync=False)
        self.assertEqual(LINE, self.path.read_bytes())

    def test_damaged(self) -> None:
        """The node starts with the readable lines; the operator gets the errors and a copy of the
        file."""
        damaged = LINE + b"rubbish\n" + b"more rubbish\n"
        self.path.write_bytes(damaged)
        self.assertEqual([ME], [entry.id for entry in self.load()])
        copy = f"{self.path.absolute()}.damaged-{UNIX_S}"
        expected = (
            f"The nodes file {self.path.absolute()} is damaged: "
            "line 2: 1 fields instead of 6 and 1 more. "
            "This node keeps its ID, and 0 other nodes could be read. "
            f"The damaged file is kept as {copy}."
        )
        self.assertEqual([expected], self.warnings)
        self.assertEqual(damaged, Path(copy).read_bytes())
        self.assertEqual(damaged, self.path.read_bytes())

    def test_identity_lost(self) -> None:
        """The log says clearly that the node has a new ID."""
        self.path.write_bytes(b"b" * 40 + b" ::1:7712 noflags 0 0 connected\n\0\0")
        self.assertEqual([b"b" * 40], [entry.id for entry in self.load()])
        self.assertIn("This node starts under a new ID, and 1 other nodes", self.warnings[0])

    def test_no_room_for_copy(self) -> None:
        """A damaged file is never overwritten without a copy: otherwise the node does not start."""
        self.path.write_bytes(b"rubbish\n")
        Path(f"{self.path}.damaged-{UNIX_S}").mkdir()
        with self.assertRaisesRegex(ConfigError, "no copy of it can be kept in .*Is a directory"):
            self.load()
        self.assertEqual(b"rubbish\n", self.path.read_bytes())

    def test_disk_full(self) -> None:
        """On a full disk the previously saved table survives."""
        self.file.save(rows(0), UNIX_MS, sync=True)
        write = os.write
        self.patch(os, "write", lambda fd, text: write(fd, b""))
        with self.assertRaisesRegex(OSError, "No space left"):
            self.file.save(rows(3), UNIX_MS, sync=True)
        self.assertEqual(LINE, self.path.read_bytes())

    def test_too_large(self) -> None:
        """A file that is too large for a nodes file is not read into memory."""
        self.path.touch()
        os.truncate(self.path, SIZE_BYTES_MAX + 1)
        with self.assertRaisesRegex(ConfigError, "larger than"):
            self.load()

    def test_no_folder(self) -> None:
        """A wrong folder is reported as such, by locking and by saving."""
        file = NodesFile(str(self.path / "missing" / "nodes.conf"))
        with self.assertRaisesRegex(ConfigError, "Can't open the nodes file .*No such file"):
            file.lock()
        with self.assertRaises(FileNotFoundError):
            file.save(rows(0), UNIX_MS, sync=False)

    def test_unreadable(self) -> None:
        """Anything else under that name is refused, instead of starting as a new node."""
        self.path.mkdir()
        with self.assertRaisesRegex(ConfigError, "Can't read the nodes file .*Is a directory"):
            self.load()

    def test_path_is_fixed(self) -> None:
        """A change of the working directory does not affect the path."""
        before = os.getcwd()
        self.addCleanup(os.chdir, before)
        elsewhere = self.mktemp()
        os.mkdir(elsewhere)
        os.chdir(elsewhere)
        self.file.save(rows(0), UNIX_MS, sync=False)
        os.chdir(before)
        self.assertEqual(LINE, self.path.read_bytes())

    def test_abandoned(self) -> None:
        """A node that fails to start removes the file if it created it, and otherwise leaves it
        unchanged and unlocked."""
        self.file.lock()
        self.file.abandon()
        self.assertFalse(self.path.exists())
        self.path.write_bytes(LINE)
        self.file.lock()
        self.file.abandon()
        self.assertEqual(LINE, self.path.read_bytes())
        other = NodesFile(str(self.path))
        self.addCleanup(other.close)
        other.lock()

    def test_replaced(self) -> None:
        """A file that was replaced while the node runs is locked before it is written; one that
        another node has locked is not written."""
        self.file.lock()
        self.path.unlink()
        self.file.save(rows(1), UNIX_MS, False)
        other = NodesFile(str(self.path))
        self.addCleanup(other.close)
        self.assertRaisesRegex(ConfigError, "in use by another node", other.lock)
        self.path.unlink()
        other.lock()
        with self.assertRaisesRegex(OSError, "another node uses it"):
            self.file.save(rows(1), UNIX_MS, False)
        self.assertEqual(b"", self.path.read_bytes())

    def test_inherited_by_nobody(self) -> None:
        """Programs that a node starts keep no lock of its file after it has ended, neither of the
        first file nor of one that replaced it."""
        self.file.lock()
        self.assertEqual([False], self.inherited())
        self.path.unlink()
        self.file.save(rows(1), UNIX_MS, False)
        self.assertEqual([False], self.inherited())

    def inherited(self) -> list[bool]:
        """Of each descriptor of the file, whether new programs inherit it."""
        found = [int(link.name) for link in Path("/proc/self/fd").iterdir() if self.is_of(link)]
        return [os.get_inheritable(fd) for fd in found]

    def is_of(self, link: Path) -> bool:
        """Whether this open file is the one of the path; one that is closed meanwhile is not."""
        return os.path.exists(link) and os.path.samefile(link, self.path)

    def test_abandoned_unlocked(self) -> None:
        """A node that fails before it has locked its file removes nothing: it may be another's."""
        self.path.touch()
        self.file.abandon()
        self.assertTrue(self.path.exists())

    def test_closed_input(self) -> None:
        """A node whose standard input is closed locks its file as the first descriptor of the
        process, and that lock is kept and given back like any other."""
        before = os.dup(0)
        self.addCleanup(os.close, before)
        self.addCleanup(os.dup2, before, 0)
        os.close(0)
        other = NodesFile(str(self.path))
        self.addCleanup(other.close)
        self.file.lock()
        self.path.unlink()
        self.file.save(rows(1), UNIX_MS, False)
        self.assertRaisesRegex(ConfigError, "in use by another node", other.lock)
        self.file.close()
        other.lock()
        other.close()
        self.path.unlink()
        self.file.lock()
        self.file.abandon()
        self.assertFalse(self.path.exists())

    def test_close_twice(self) -> None:
        """Closing is safe in every error path."""
        self.file.lock()
        self.file.close()
        self.file.close()


class StartTests(RootCase):
    """A whole node and a damaged file."""

    def test_starts(self) -> None:
        """The node starts with its ID, logs the damage, and repairs the file."""
        path = self.folder / "nodes.conf"
        path.write_bytes(LINE + b"\0\0\0\n")
        root = self.started()
        self.assertEqual(ME, root.runtime.node.id)
        self.assertIn("This node keeps its ID", self.logged())
        self.assertEqual(ME + b" :0 myself 0 0 connected\n", path.read_bytes())
        (copy,) = self.folder.glob("nodes.conf.damaged-*")
        self.assertEqual(LINE + b"\0\0\0\n", copy.read_bytes())


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
