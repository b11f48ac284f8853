"""In which order a node starts and stops, and what a step that fails leads to."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from disque_tx.commands.base.context import Server
from disque_tx.commands.base.values import Error
from disque_tx.commands.server.memory import MemoryControl
from disque_tx.commands.table import standard_registry
from disque_tx.core.jobs.addrequest import AddRequest
from disque_tx.core.node import Node
from disque_tx.core.tables.definition import SKIP, Definition
from disque_tx.engine.calendar import CronCalendar
from disque_tx.engine.lifecycle import Done, Lifecycle
from disque_tx.errors import CommandError
from tests.core.bench import UNIX_S, NodeCase
from tests.engine.aof.bench import Lines


class _Steps:
    """A process and a log without files: ``taken`` are the steps so far. ``errors``: those that
    fail, by step. ``pieces``: how often there are more queued jobs. ``look``: called with each
    step."""

    def __init__(self) -> None:
        self.taken: list[str] = []
        self.errors: dict[str, OSError] = {}
        self.pieces = 0
        self.queued = self
        self.look: Callable[[str], object] = bool

    def _take(self, step: str) -> None:
        self.taken.append(step)
        self.look(step)
        if step in self.errors:
            raise self.errors[step]

    # -- the log

    def flush_and_sync(self) -> None:
        self._take("sync the log")

    def resume(self) -> bool:
        self._take("queue")
        self.pieces -= 1
        return self.pieces >= 0

    def later(self, work: Callable[[], object]) -> None:
        self._take("later")
        work()

    def save(self) -> None:
        self._take("save what is queued")

    # -- the process

    def load(self, done: Done) -> None:
        self._take("load")
        done(self.errors.get("loaded"))

    def prepare(self, done: Done) -> None:
        self._take("prepare")
        done(self.errors.get("prepared"))

    def start_serving(self) -> None:
        self._take("serve")

    def start_failed(self, error: Exception) -> None:
        self._take(f"start failed: {error}")

    def stop_accepting(self) -> None:
        self._take("accept no more")

    def save_nodes(self, sync: bool = False) -> None:
        self._take("save nodes")

    def nodes_file_failed(self, error: OSError) -> None:
        self._take("nodes file failed")


class LifecycleTests(NodeCase):
    """One node, started and stopped."""

    def setUp(self) -> None:
        super().setUp()
        self.steps = _Steps()
        self.control = MemoryControl({})
        self.server = Server(self.node, self.control, standard_registry())
        self.reports = Lines()
        self.lifecycle = Lifecycle(self.server, self.steps, self.turn, self.steps, self.reports)

    @contextmanager
    def turn(self) -> Iterator[Node]:
        """A turn of the node."""
        yield self.node

    def start(self) -> list[str]:
        """The steps of a start."""
        self.lifecycle.begin()
        taken, self.steps.taken = self.steps.taken, []
        return taken

    def stop(self) -> tuple[bool, list[str]]:
        """Whether the stop was a clean one, and its steps."""
        clean = self.lifecycle.end()
        clean = self.lifecycle.finish() and clean
        return clean, self.steps.taken

    def test_start(self) -> None:
        """The nodes file, with the node's own ID, is written before a job can be delivered, and
        clients are served when all queued jobs are back."""
        self.steps.pieces = 1
        steps = ["load", "prepare", "save nodes", "queue", "later", "queue", "serve"]
        self.assertEqual(steps, self.start())
        self.assertFalse(self.server.degraded)

    def test_start_fails(self) -> None:
        """A node that cannot start leaves its files as they were, at the stop as well."""
        for step, taken in (("loaded", ["load"]), ("prepared", ["load", "prepare"])):
            self.setUp()
            self.steps.errors[step] = OSError("no")
            self.assertEqual([*taken, "start failed: no"], self.start())
            self.assertEqual((True, ["accept no more", "sync the log"]), self.stop())

    def test_schedules(self) -> None:
        """Occurrences are made once the node has started, not while it still reads what was
        made."""
        self.node.recurring.calendar = CronCalendar()
        self.change_tables(policies=False)
        self.pass_ms(120_000)
        self.assertEqual(0, self.node.recurring.made)
        self.start()
        self.pass_ms(120_000)
        self.assertGreater(int(self.node.recurring.made), 0)

    def test_nodes_file_fails(self) -> None:
        """A node that cannot write its nodes file says so once, not after every turn."""
        self.steps.errors["save nodes"] = OSError(errno.EIO, "no")
        self.node.membership.changed = True
        self.assertIn("nodes file failed", self.start())
        self.assertFalse(self.node.membership.changed)

    def test_stop(self) -> None:
        """Nobody is accepted any more when clients are sent away, and what is queued is written
        when nothing can be delivered any more."""
        self.start()
        steps = ["accept no more", "sync the log", "save what is queued", "save nodes"]
        self.assertEqual((True, steps), self.stop())

    def test_clients(self) -> None:
        """A client that waits for a job is told at the stop why it gets none, and its connection is
        closed after that, before the log is written for the last time."""
        self.start()
        waiting = self.wait(b"q")
        done: list[tuple[list[object], bool]] = []

        def look(step: str) -> None:
            if step == "sync the log":
                done.append(([*self.replies(waiting)], waiting.closing))

        self.steps.look = look
        self.stop()
        error = Error(b"LEAVING This node is shutting down, please connect to a different one")
        self.assertEqual([([error], True)], done)
        self.assertFalse(self.client.closing)

    def test_log_not_written(self) -> None:
        """Beside a log that lacks records no list of queued jobs is written: it would queue jobs
        that were delivered."""
        self.start()
        self.steps.errors["sync the log"] = OSError(errno.ENOSPC, "no")
        self.assertEqual((False, ["accept no more", "sync the log", "save nodes"]), self.stop())
        self.assertEqual(1, len(self.reports.lines))

    def test_tables(self) -> None:
        """What the files of policies and schedules lack is written at the stop, each whatever
        becomes of the other."""
        self.start()
        self.change_tables()
        self.assertTrue(self.stop()[0])
        self.assertEqual(["save policies", "save schedules"], self.control.performed)

    def test_tables_fail(self) -> None:
        """A stop that could not write a table is no clean one."""
        for policies, schedules in ((True, False), (False, True), (True, True)):
            self.setUp()
            self.start()
            self.change_tables(policies, schedules)
            self.control.refusal = CommandError("ERR", "no")
            self.assertFalse(self.stop()[0])
            self.assertEqual(policies + schedules, len(self.reports.lines))

    def change_tables(self, policies: bool = True, schedules: bool = True) -> None:
        """Change what the files hold."""
        if policies:
            table = self.node.policy_table
            table.apply(table.plan_set(b"q", [(b"ttl", b"5")], self.node.id), UNIX_S)
        if schedules:
            wanted = Definition(b"* * * * *", b"", SKIP, AddRequest(b"q", b"body"), UNIX_S)
            times = self.node.timetable
            times.apply(times.plan_set(b"s", wanted, self.node.id), UNIX_S)
