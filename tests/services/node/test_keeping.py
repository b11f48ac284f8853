"""What happened at a node is written to its disk in time, and there after a restart."""

from __future__ import annotations

from pathlib import Path

from disque_tx.services.node.keeping import SAVED_S
from disque_tx.services.node.root import NodeRoot
from tests.services.nodebench import drive
from tests.services.rootbench import RootCase


class KeepingTests(RootCase):
    """A whole node."""

    def path_of_history(self) -> Path:
        """The file."""
        return Path(f"{self.settings.cluster_config_file}.history")

    def note(self, root: NodeRoot, text: bytes) -> None:
        """A client leaves a note."""
        self.successResultOf(root.node_service.call(b"NOTE", text))

    def kept(self, root: NodeRoot) -> list[bytes]:
        """The actions that the node knows, newest first."""
        rows = self.successResultOf(root.node_service.call(b"ACTIONS"))
        return [row[1] for row in rows]

    def test_stop(self) -> None:
        """What clients changed is known after a restart, and so is the restart itself."""
        root = self.started()
        self.note(root, b"deployed")
        self.stopped(root)
        self.assertEqual([b"start", b"note", b"start"], self.kept(self.started()))

    def test_every_minute(self) -> None:
        """A process that is killed loses a minute at the most."""
        root = self.started()
        self.note(root, b"deployed")
        self.assertFalse(self.path_of_history().exists())
        self.reactor.advance(SAVED_S)
        drive(self.reactor)
        self.assertIn(b"NOTE deployed", self.path_of_history().read_bytes())

    def test_disk_in_the_way(self) -> None:
        """A node whose history cannot be written works on, tells its operator, and tries again."""
        root = self.started()
        self.path_of_history().mkdir()
        self.reactor.advance(SAVED_S)
        drive(self.reactor)
        self.assertIn("can't be written", self.logged())
        self.path_of_history().rmdir()
        self.reactor.advance(SAVED_S)
        drive(self.reactor)
        self.assertTrue(self.path_of_history().is_file())
        self.assertEqual([b"start"], self.kept(root))

    def test_off(self) -> None:
        """Without a history, the actions are kept all the same."""
        self.settings.history = False
        root = self.started()
        self.note(root, b"deployed")
        self.assertFalse(root.server.node.state.history.active)
        self.stopped(root)
        self.assertEqual([b"start", b"note", b"start"], self.kept(self.started()))

    def test_sampled(self) -> None:
        """The periodic work of the node takes the samples."""
        root = self.started()
        history = root.server.node.state.history
        self.successResultOf(root.node_service.call(b"ADDJOB", b"q", b"x", b"0"))
        self.reactor.advance(1)
        history._slot -= 1  # as if ten seconds had passed
        self.reactor.advance(1)
        drive(self.reactor)
        self.assertEqual(1, len(history.records))
