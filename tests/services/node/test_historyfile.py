"""What happened at a node is known after a restart."""

from __future__ import annotations

import struct
from errno import EACCES, ENOSPC

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.commands.base.actions import ACTIONS_MAX, Action
from disque_tx.commands.base.context import Server
from disque_tx.commands.base.control import Control
from disque_tx.commands.table import standard_registry
from disque_tx.core.node import Node
from disque_tx.core.nodes.membership import Membership
from disque_tx.core.statistics.flows import FLOWS_MAX
from disque_tx.core.statistics.rings import POINTS_MAX
from disque_tx.errors import PeerError
from disque_tx.messages.nodes import MYSELF, NodeEntry
from disque_tx.services.machine.memoryfiles import MemoryFiles
from disque_tx.services.node.historyfile import HistoryFile
from disque_tx.wire.files.history import parse, render
from tests.core.bench import ME, NumberedIds
from tests.engine.aof.bench import Lines

_PATH = "/data/nodes.conf.history"
_AWKWARD = b'a "queue"\n\xff'
_WALL_US = 1_800_000_000_000_000
_FOREVER = 1 << 40


class HistoryFileTests(SynchronousTestCase):
    """One node, its file, and starts."""

    def setUp(self) -> None:
        self.files = MemoryFiles()
        self.log = Lines()
        self.start()

    def start(self) -> None:
        """A new process of the node."""
        membership = Membership(NodeEntry(ME, b"", 7711, MYSELF, 0), lambda: b"b" * 40)
        node = Node(membership, NumberedIds(), lambda: 0.5)
        node.begin(1_000, _WALL_US)
        self.server = Server(node, Control(), standard_registry())
        self.file = HistoryFile(self.server, self.files, "/data/nodes.conf", self.log)
        self.file.load()

    def happen(self, name: bytes = _AWKWARD) -> None:
        """Something happens in a queue, a step ends, and a client changes something."""
        node = self.server.node
        history = node.state.history
        history.sample(FLOWS_MAX)
        node.state.flows.added(name)
        node.begin(int(node.now_ms) + 10_000, int(node.wall_us) + 10_000_000)
        history.sample(FLOWS_MAX)
        self.server.actions.add(Action(_WALL_US // 1000, b"pause", b"ann", b"PAUSE " + name))

    def rows(self, name: bytes | None) -> list[list[int]]:
        """The history of a queue."""
        return self.server.node.state.history.between(name, 0, 0, _FOREVER)

    def test_kept(self) -> None:
        """Charts and actions go on over a restart, even one without a stop."""
        self.happen()
        self.file.snapshot()()
        before = (self.rows(_AWKWARD), self.rows(None))
        self.files.crash()
        self.start()
        self.assertEqual(before, (self.rows(_AWKWARD), self.rows(None)))
        self.assertEqual([1], [row[1] for row in self.rows(_AWKWARD)])
        (action,) = self.server.actions.entries
        found = (int(action.at_ms), action.command, action.who, action.what)
        self.assertEqual((_WALL_US // 1000, b"pause", b"ann", b"PAUSE " + _AWKWARD), found)

    def test_written_when_new(self) -> None:
        """A node in which nothing happens writes nothing."""
        self.assertFalse(self.file.is_unsaved())
        self.happen()
        self.assertTrue(self.file.is_unsaved())
        self.file.snapshot()()
        self.assertFalse(self.file.is_unsaved())

    def test_disk_full(self) -> None:
        """What could not be written is written later, and the log says why."""
        self.happen()
        self.files.write_error = ENOSPC
        error = self.assertRaises(OSError, self.file.snapshot())
        self.file.failed(error)
        self.assertTrue(self.file.is_unsaved())
        self.assertIn("can't be written", self.log.lines[-1])

    def test_damaged(self) -> None:
        """A damaged file is kept under another name, and the node starts without it."""
        self.happen()
        self.file.snapshot()()
        self.files.put(_PATH, self.files.content(_PATH).replace(b"PAUSE", b"PAUSF"))
        self.start()
        self.assertEqual(([], 0), (self.rows(None), len(self.server.actions.entries)))
        self.assertIn("can't be used: its checksum is wrong", self.log.lines[-1])
        self.assertEqual([f"{_PATH}.damaged-1800000000"], self.files.paths())

    def test_lines(self) -> None:
        """The operator reads which file is meant, what is wrong with it, where it is kept, and what
        follows."""
        start, end = f"warning: The history {_PATH}", "The node starts without its history."
        no_room, denied = "No space left on device", "Permission denied"
        self.files.put(_PATH, b"x")
        self.files.rename_error = EACCES
        self.start()
        what = "it begins with something else, or is of a later version"
        kept = f"It is kept as {_PATH}, for it can't be renamed: {denied}."
        self.files.rename_error = 0
        self.start()
        moved = f"It is kept as {_PATH}.damaged-1800000000."
        self.assertEqual(
            [f"{start} can't be used: {what}. {where} {end}" for where in (kept, moved)],
            self.log.lines,
        )
        self.log.lines.clear()
        opened = self.patch(self.files, "open", self.refuse)
        self.start()
        opened.restore()
        self.file.failed(OSError(ENOSPC, no_room))
        self.assertEqual(
            [f"{start} can't be read: {denied}. {end}", f"{start} can't be written: {no_room}."],
            self.log.lines,
        )

    def refuse(self, path: str) -> None:
        """A file that cannot be opened."""
        raise PermissionError(EACCES, "Permission denied", path)

    def test_longest_ring(self) -> None:
        """A ring is taken when it is full, and refused when it has one point more."""
        for extra, refused in ((0, 0), (1, 1)):
            count = POINTS_MAX[0] + extra
            points = [struct.pack("<12H", 0, number, *[0] * 10) for number in range(count)]
            self.files.put(_PATH, render([], [(b"", 0, [b"".join(points), b"", b""])]))
            del self.log.lines[:]
            self.start()
            self.assertEqual(refused, len(self.log.lines), self.log.lines)

    def test_no_points(self) -> None:
        """Points that are none are refused, even with the right checksum: the file may be made by
        somebody else."""
        for rings in ([b"x" * 23, b"", b""], [b"\0" * 48, b"", b""], [b"\0" * 24 * 400, b"", b""]):
            self.files.put(_PATH, render([], [(b"", 0, rings)]))
            self.start()
            self.assertIn("can't be used", self.log.lines.pop())

    def test_order_of_points(self) -> None:
        """Points in order are taken, whatever the numbers of their steps, and others are refused:
        charts would run backwards."""
        before, after = struct.pack("<12H", 2, 65_535, *[0] * 10), struct.pack("<12H", 3, *[0] * 11)
        for ring, refused in ((before + after, 0), (after + before, 1), (after + after, 1)):
            self.files.put(_PATH, render([], [(b"", 0, [ring, b"", b""])]))
            del self.log.lines[:]
            self.start()
            self.assertEqual(refused, len(self.log.lines), self.log.lines)

    def test_bounded(self) -> None:
        """However much clients change, the list holds the last thousand actions."""
        for number in range(ACTIONS_MAX + 10):
            self.server.actions.add(Action(number, b"note", b"w" * 9_999, b"x" * 9_999))
        self.file.snapshot()()
        self.assertLess(len(self.files.content(_PATH)), 1_000_000)
        self.start()
        numbers = [int(action.at_ms) for action in self.server.actions.entries]
        self.assertEqual(list(range(ACTIONS_MAX + 9, 9, -1)), numbers)

    def test_no_file(self) -> None:
        """What is no such file is refused with the reason."""
        good = render([(1, b"pause", b"", b"x", b"", -1)], [(b"q", 7, [b"", b"", b""])])
        self.assertEqual(
            ([(1, b"pause", b"", b"x", b"", -1)], [(b"q", 7, [b"", b"", b""])]), parse(good)
        )
        for bad in (b"", b"x" + good, good[:-5], good.replace(b"version 1", b"version 2")):
            self.assertRaises(PeerError, parse, bad)
