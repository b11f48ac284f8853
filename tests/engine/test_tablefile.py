"""The files of shared tables: what a restart finds, and files that cannot be used."""

from __future__ import annotations

import errno

from disque_tx.core.jobs.addrequest import AddRequest
from disque_tx.core.tables.definition import SKIP, Definition
from disque_tx.engine.sidefiles import TableFile, TableFiles
from disque_tx.services.machine.log import DaemonLog
from disque_tx.services.machine.memoryfiles import MemoryFiles
from disque_tx.wire.files.tables import render
from tests.core.bench import UNIX_S, NodeCase

NODES = "/data/nodes.conf"
PATH = NODES + ".policies"


class TableFileTests(NodeCase):
    """A node with files in memory."""

    def setUp(self) -> None:
        super().setUp()
        self.files = MemoryFiles()
        self.log_path = self.mktemp()
        open(self.log_path, "w").close()
        self.file = self.opened()

    def opened(self) -> TableFile:
        """The file of the node's policies."""
        return self.all_files().policies

    def all_files(self) -> TableFiles:
        """All files of the node."""
        return TableFiles(self.node, self.files, NODES, DaemonLog("notice", self.log_path))

    def logged(self) -> str:
        """The lines of the log."""
        with open(self.log_path, encoding="utf-8") as file:
            return file.read()

    def set(self) -> None:
        """A policy is set and saved."""
        table = self.node.policy_table
        table.apply(table.plan_set(b"q", [(b"ttl", b"5")], self.node.id), UNIX_S)
        self.file.save()

    def restart(self) -> None:
        """The node begins again with what is on the disk."""
        NodeCase.setUp(self)
        self.file = self.opened()
        self.file.load()

    def test_restart(self) -> None:
        """Policies survive a power failure as soon as their client has its answer."""
        self.set()
        self.assertFalse(self.node.policy_table.unsaved)
        self.files.crash()
        self.restart()
        policy = self.node.policies.of(b"q")
        assert policy is not None
        self.assertEqual(5, policy.ttl_s)
        self.assertEqual(2, self.node.policy_table.registers.next_counter())
        self.assertEqual((0, False), self.state())

    def state(self) -> tuple[int, bool]:
        """Changes received, and whether the file lacks something."""
        table = self.node.policy_table
        return table.received, table.unsaved

    def test_none(self) -> None:
        """A new node has no file, and nothing is wrong with that."""
        self.file.load()
        self.assertEqual("", self.logged())
        self.assertEqual([], self.files.paths())

    def test_set_aside(self) -> None:
        """A file that is torn, foreign or from a later version is kept under another name, and the
        node starts and can save."""
        later = render([], 1).replace(b"version 1", b"version 3")
        for data, why in (
            (render([], 1)[:-9], "checksum"),
            (b"port 7711\n", "no file of policies"),
            (later, "later version"),
        ):
            self.files.put(PATH, data)
            self.restart()
            kept = f"{PATH}.damaged-{UNIX_S}"
            self.files.crash()
            self.assertEqual([kept], [path for path in self.files.paths() if path != NODES])
            self.assertEqual(data, self.files.content(kept))
            self.assertIn(why, self.logged())
            self.assertIn(kept, self.logged())
            self.set()
            self.files.remove(PATH)

    def test_not_renamed(self) -> None:
        """A file that can be neither used nor set aside is not overwritten either."""
        self.files.put(PATH, b"port 7711\n")
        self.files.rename_error = errno.EACCES
        self.restart()
        self.assertIn("takes no changes of policies", self.logged())
        self.files.rename_error = 0
        self.assertRaises(OSError, self.set)
        self.assertEqual(b"port 7711\n", self.files.content(PATH))

    def test_unreadable(self) -> None:
        """A file that could not be read is not overwritten by the first change."""
        self.set()
        before = self.files.content(PATH)
        opened = self.patch(self.files, "open", self._broken)
        self.restart()
        opened.restore()
        self.assertIn("takes no changes of policies", self.logged())
        self.assertRaises(OSError, self.set)
        self.assertEqual(before, self.files.content(PATH))

    def _broken(self, path: str) -> None:
        raise OSError(errno.EIO, "Input/output error", path)

    def test_disk_full(self) -> None:
        """What could not be written is still to be written: with the next change, or at the
        stop."""
        self.files.room_bytes = 0
        self.assertRaises(OSError, self.set)
        self.assertTrue(self.node.policy_table.unsaved)

    def test_tables_apart(self) -> None:
        """Schedules have a file of their own, and a file of policies is none of schedules."""
        self.set()
        table = self.node.timetable
        request = AddRequest(b"q", b"one\ntwo \0")
        wanted = Definition(b"@daily", b"", SKIP, request, UNIX_S)
        table.apply(table.plan_set(b"s", wanted, self.node.id), UNIX_S)
        self.all_files().schedules.save()
        self.files.crash()
        self.restart()
        self.all_files().load()
        self.assertEqual([b"s"], self.node.timetable.names())
        self.assertEqual(wanted.content(), self.node.timetable.find(b"s").content())
        self.files.put(NODES + ".schedules", self.files.content(PATH))
        self.restart()
        self.all_files().load()
        self.assertEqual([], self.node.timetable.names())
        self.assertIn("it is no file of schedules", self.logged())
