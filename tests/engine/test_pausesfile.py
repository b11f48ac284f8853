"""Queues that PAUSE paused stay paused over restarts."""

from __future__ import annotations

from errno import ENOSPC

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.core.node import Node
from disque_tx.core.nodes.membership import Membership
from disque_tx.core.queues.queues import PAUSE_IN, PAUSE_NONE, PAUSE_OUT
from disque_tx.engine.sidefiles import PausesFile
from disque_tx.errors import PeerError
from disque_tx.messages.nodes import MYSELF, NodeEntry
from disque_tx.services.machine.memoryfiles import MemoryFiles
from disque_tx.wire.files.pauses import parse, render
from tests.core.bench import ME, NumberedIds
from tests.engine.aof.bench import Lines

PATH = "/data/nodes.conf.pauses"
AWKWARD = b'a "queue"\n\xff'


class PausesFileTests(SynchronousTestCase):
    """One node, its file, and starts."""

    def setUp(self) -> None:
        self.files = MemoryFiles()
        self.log = Lines()
        self.start()

    def start(self) -> None:
        """A new process of the node."""
        membership = Membership(NodeEntry(ME, b"", 7711, MYSELF, 0), lambda: b"b" * 40)
        self.node = Node(membership, NumberedIds(), lambda: 0.5)
        self.node.begin(1_000, 1_800_000_000_000_000)
        self.file = PausesFile(self.node, self.files, "/data/nodes.conf", self.log)
        self.file.load()

    def pause(self, name: bytes, flags: int) -> None:
        """PAUSE, in a turn."""
        self.node.pause(name, flags, b"10.0.0.1:5 ann")
        self.file.save()

    def test_kept(self) -> None:
        """A paused queue is paused after a restart, and who paused it, and when, is known."""
        self.pause(AWKWARD, PAUSE_IN)
        self.files.crash()
        self.start()
        self.assertEqual(PAUSE_IN, self.node.queues.paused(AWKWARD))
        said = self.node.pausing.kept[AWKWARD]
        self.assertEqual((b"10.0.0.1:5 ann", 1_800_000_000), (said.who, said.at_s))

    def test_written_once(self) -> None:
        """A file that holds what is paused is left alone."""
        self.pause(b"q", PAUSE_IN)
        before = self.files.syncs
        self.file.save()
        self.assertEqual(before, self.files.syncs)

    def test_ended(self) -> None:
        """A queue that goes on goes on after a restart."""
        self.pause(b"q", PAUSE_OUT)
        self.pause(b"q", PAUSE_NONE)
        self.start()
        self.assertEqual(PAUSE_NONE, self.node.queues.paused(b"q"))

    def test_flushed(self) -> None:
        """What is forgotten with all queues does not come back."""
        self.pause(b"q", PAUSE_OUT)
        self.node.flush_all()
        self.file.save()
        self.start()
        self.assertEqual({}, self.node.pausing.kept)

    def test_written_with_the_turn(self) -> None:
        """The end of the turn writes the file, before the reply leaves."""
        self.node.membership.saved()
        self.node.pause(b"q", PAUSE_NONE)
        self.assertFalse(self.node.membership.changed)
        self.node.pause(b"q", PAUSE_IN)
        self.assertTrue(self.node.membership.changed)

    def test_bounded(self) -> None:
        """A client that pauses without end fills no file."""
        for number in range(10_001):
            self.node.pause(b"%d" % number, PAUSE_IN)
        self.node.pause(b"x" * 5_000, PAUSE_IN)
        self.assertEqual(10_000, len(self.node.pausing.kept))
        self.assertEqual(PAUSE_IN, self.node.queues.paused(b"10000"))

    def test_disk_full(self) -> None:
        """A queue is paused although that cannot be written, and the log says so."""
        self.files.write_error = ENOSPC
        self.pause(b"q", PAUSE_IN)
        self.assertEqual(PAUSE_IN, self.node.queues.paused(b"q"))
        self.assertIn("can't be written", self.log.lines[-1])

    def test_damaged(self) -> None:
        """A damaged file is kept under another name, and the node starts without it."""
        self.pause(b"q", PAUSE_IN)
        self.files.put(PATH, self.files.content(PATH).replace(b"pause 1", b"pause 2"))
        self.start()
        self.assertEqual(PAUSE_NONE, self.node.queues.paused(b"q"))
        self.assertIn("can't be used: its checksum is wrong", self.log.lines[-1])
        self.assertEqual([f"{PATH}.damaged-1800000000"], self.files.paths())

    def test_no_file(self) -> None:
        """What is no such file is refused with the reason."""
        good = render([(b"q", PAUSE_IN, b"", 1)])
        self.assertEqual([(b"q", PAUSE_IN, b"", 1)], parse(good))
        for bad in (b"", b"x" + good, good[:-5], good.replace(b"version 1", b"version 2")):
            self.assertRaises(PeerError, parse, bad)
