"""Ownership of the log: two nodes in one folder, and a log file that is removed or replaced."""

from __future__ import annotations

import os
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.engine.interfaces import IFiles
from disque_tx.errors import CommandError, ConfigError
from disque_tx.services.machine.files import RealFiles
from disque_tx.services.machine.memoryfiles import MemoryFiles
from tests.engine.aof.bench import PATH, WALL_US, Bench, settings


class TwoNodesTests(SynchronousTestCase):
    """Two nodes with the same ``dir``: what one has confirmed must not be lost because of the
    other."""

    def make_files(self) -> IFiles:
        """The folder that both share."""
        return MemoryFiles()

    folder = os.path.dirname(PATH)

    def setUp(self) -> None:
        self.files = self.make_files()
        self.first = self.node(True)
        self.successResultOf(self.first.start())
        self.first.turn(self.first.add)

    def node(self, appendonly: bool) -> Bench:
        """Another node."""
        node = Bench(self.files, settings(dir=self.folder, appendonly=appendonly))
        self.addCleanup(node.aof.stopService)
        return node

    def restarted(self) -> list[bytes]:
        """The jobs of the first node after a restart."""
        self.first.aof.stopService()
        again = self.node(True)
        self.successResultOf(again.start())
        return again.ids()

    def test_second_does_not_start(self) -> None:
        """The second node fails to start with an error that says what to do, before and after a
        rewrite of the first one's log."""
        for _ in range(2):
            error = self.failureResultOf(self.node(True).start(), ConfigError).value
            self.assertIn("disque.aof is in use by another node. Give every node its", str(error))
            self.first.aof.rewrite()
            self.first.settle()
        self.assertEqual(self.first.ids(), self.restarted())

    def test_during_a_rewrite(self) -> None:
        """While the first log is still being written, its name is already claimed."""
        self.first.aof.disable()
        self.first.threads.held = True
        self.first.aof.enable()
        self.first.settle()
        self.failureResultOf(self.node(True).start(), ConfigError)
        second = self.node(False)
        self.assertRaises(OSError, second.aof.enable)
        self.first.threads.release()
        self.first.settle()
        self.first.threads.held = False
        self.first.threads.release()
        self.assertEqual("on", self.first.field("aof_state"))
        self.assertRaises(OSError, second.aof.enable)
        self.assertEqual(self.first.ids(), self.restarted())

    def test_second_without_a_log(self) -> None:
        """A node whose log is disabled does not overwrite or load another node's log on command."""
        second = self.node(False)
        self.successResultOf(second.start())
        second.turn(second.add, second.add)
        for operation in (second.aof.rewrite, second.aof.reload):
            error = self.assertRaises(CommandError, operation)
            self.assertIn("another node uses it", error.text)
        self.assertRaises(OSError, second.aof.rewrite_now)
        self.assertRaises(OSError, second.aof.enable)
        self.assertEqual("off", second.field("aof_state"))
        self.assertEqual(self.first.ids(), self.restarted())

    def test_free_again(self) -> None:
        """A log that was disabled can be used by another node."""
        self.first.aof.disable()
        second = self.node(False)
        second.aof.enable()
        second.settle()
        self.assertEqual("on", second.field("aof_state"))
        self.assertRaises(OSError, self.first.aof.enable)


class TwoRealNodesTests(TwoNodesTests):
    """The same on a real disk."""

    def make_files(self) -> IFiles:
        self.folder = str(Path(self.mktemp()).resolve())
        os.mkdir(self.folder)
        return RealFiles()


class NoNameTests(SynchronousTestCase):
    """The log file was removed or replaced: new records would be gone after a restart."""

    def setUp(self) -> None:
        self.files = MemoryFiles()

    def node(self, policy: str) -> Bench:
        """A node with one job."""
        bench = Bench(self.files, settings(appendfsync=policy))
        self.successResultOf(bench.start())
        bench.turn(bench.add)
        return bench

    def noticed(self, bench: Bench) -> None:
        """The loss is logged, counted as an error, and then repaired."""
        bench.threads.held = True
        bench.pass_ms(2_000)
        self.assertEqual("err", bench.field("aof_last_write_status"))
        self.assertIn("is not the file that this node has open", bench.aof.write_error)
        (line,) = [line for line in bench.log.lines if "removed, moved or replaced" in line]
        self.assertIn(PATH, line)
        bench.threads.held = False
        for _ in range(5):
            bench.settle()
            bench.threads.release()
        self.assertEqual("ok", bench.field("aof_last_write_status"))
        self.assertEqual([], bench.died)
        bench.turn(bench.add)
        ids = bench.ids()
        bench.aof.stopService()
        again = Bench(self.files, settings())
        self.successResultOf(again.start())
        self.assertEqual(ids, again.ids())
        again.aof.stopService()

    def test_removed(self) -> None:
        """The file was deleted."""
        for policy in ("always", "everysec", "no"):
            bench = self.node(policy)
            self.files.remove(PATH)
            self.noticed(bench)
            self.files.remove(PATH)

    def test_replaced(self) -> None:
        """Another file has its name, perhaps the log of an original node: it is kept."""
        bench = self.node("everysec")
        self.files.replace(PATH, b"the log of a stranger")
        self.noticed(bench)
        (found,) = [path for path in self.files.paths() if ".found-" in path]
        self.assertEqual(b"the log of a stranger", self.files.content(found))
        began_s, ended_s = WALL_US // 1_000_000, bench.wall_us // 1_000_000
        found_s = int(found.removeprefix(f"{PATH}.found-"))
        self.assertTrue(began_s <= found_s <= ended_s, found)

    def test_taken(self) -> None:
        """Another node uses the name: its file is left alone, and this node confirms nothing."""
        bench = self.node("everysec")
        self.files.rename(PATH, PATH + ".moved")
        other = Bench(self.files, settings(), seed=2)
        self.successResultOf(other.start())
        other.turn(other.add)
        bench.pass_ms(15_000)
        bench.settle()
        self.assertEqual("err", bench.field("aof_last_write_status"))
        self.assertIn("another node uses it", " ".join(bench.log.lines))
        other.aof.stopService()
        again = Bench(self.files, settings(), seed=3)
        self.successResultOf(again.start())
        self.assertEqual(other.ids(), again.ids())

    def test_at_the_end(self) -> None:
        """A node that is stopped before it could repair its log does so while stopping."""
        bench = self.node("everysec")
        self.files.remove(PATH)
        bench.threads.held = True
        bench.pass_ms(2_000)
        bench.aof.stopService()
        bench.threads.release()
        bench.threads.release()
        again = Bench(self.files, settings())
        self.successResultOf(again.start())
        self.assertEqual(bench.ids(), again.ids())

    def test_rewritten_ten_times(self) -> None:
        """A log that its own node rewrites always has its name."""
        bench = self.node("everysec")
        for _ in range(10):
            bench.aof.rewrite()
            bench.pass_ms(1_500)
            bench.settle()
        self.assertEqual("ok", bench.field("aof_last_write_status"))
        self.assertNotIn("removed, moved", " ".join(bench.log.lines))
