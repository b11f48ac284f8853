"""Processes that are killed while clients add and fetch jobs."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import time
from typing import Any

from tests.acceptance.daemon import wait_for
from tests.acceptance.load import GONE, Load
from tests.acceptance.processes.group import Group, GroupTestCase, alive
from tests.acceptance.resp import Connection, ReplyError, encode

ALWAYS = ("appendonly yes", "appendfsync always", "cluster-node-timeout 3000")


class GroupLoad(Load):
    """Clients that connect again when their process has ended."""

    def __init__(self, group: Group) -> None:
        super().__init__(lambda: Connection((group.ip, group.port), timeout_s=10))

    def _until_gone(self, work: Any) -> None:
        while not self._stopping.is_set():
            with contextlib.suppress(ReplyError):  # such as LEAVING
                super()._until_gone(work)
            time.sleep(0.05)

    def _produce(self, connection: Connection) -> None:
        """Jobs with one copy, at most once and at least once, and jobs with two."""
        kinds = [random.choice(((1, 0), (1, 1), (2, 1))) for _ in range(10)]
        connection.send_raw(
            b"".join(
                encode("ADDJOB", "q", "body", 2000, "REPLICATE", copies, "RETRY", retry)
                for copies, retry in kinds
            )
        )
        for _copies, retry in kinds:
            self.note_answer(connection.read(), retry == 0)
        time.sleep(0.01)


class CrashTests(GroupTestCase):
    """Three processes that write logs."""

    def setUp(self) -> None:
        self.crashing = self.group(3, *ALWAYS).start()
        self.load = GroupLoad(self.crashing)

    def wait_for_jobs(self, count: int) -> None:
        """Wait until so many more jobs were accepted."""
        wanted = len(self.load.added) + count
        wait_for(lambda: len(self.load.added) >= wanted, "jobs are accepted")

    def kill(self, numbers: tuple[int, ...]) -> None:
        """Kill these processes, and wait until they run again."""
        group = self.crashing
        pids = group.pids()
        for number in numbers:
            os.kill(pids[number], signal.SIGKILL)

        def replaced() -> bool:
            with contextlib.suppress(*GONE, ReplyError):
                rows = group.rows()
                return len(rows) == 3 and all(
                    row["state"] == "ready" and (n not in numbers or row["pid"] != str(pids[n]))
                    for n, row in rows.items()
                )
            return False

        wait_for(replaced, f"processes {numbers} run again")

    def judge(self) -> None:
        """Fetch what is left: nothing accepted is lost, and RETRY 0 was never delivered twice."""
        group, load = self.crashing, self.load
        group.wait_until_joined()
        clients = [group.client((group.ip, group.own_port(number))) for number in (1, 2, 3)]
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            for client in clients:
                ids = load.fetch(client, 1000)
                if ids:
                    client.call("ACKJOB", *ids)
                    load.ack_sent.update(ids)
                    deadline = time.monotonic() + 10
        often = load.added - load.once
        self.assertEqual(set(), often - load.ack_sent - set(load.delivered), "never delivered")
        twice = {job_id for job_id in load.once if load.delivered.get(job_id, 0) > 1}
        self.assertEqual(set(), twice, "at most once, delivered twice")

    def test_each_in_turn(self) -> None:
        """Whichever process is killed, the daemon goes on, and no accepted job is lost."""
        self.load.begin(producers=3, consumers=3)
        try:
            for number in (1, 2, 3, 2):
                self.wait_for_jobs(100)
                self.kill((number,))
            self.wait_for_jobs(100)
        finally:
            self.load.end()
        self.judge()
        self.assertEqual({1: "1", 2: "2", 3: "1"}, self.restarts())

    def restarts(self) -> dict[int, str]:
        """How often each process was started again."""
        return {number: row["restarts"] for number, row in self.crashing.rows().items()}

    def test_all_at_once(self) -> None:
        """When all processes are killed at once, the daemon is back by itself, with all jobs."""
        self.load.begin(producers=3, consumers=3)
        try:
            for _ in range(2):
                self.wait_for_jobs(100)
                self.kill((1, 2, 3))
            self.wait_for_jobs(100)
        finally:
            self.load.end()
        self.judge()

    def test_parent(self) -> None:
        """When the parent is killed, its children end in an orderly way and none is left; nothing
        accepted is lost."""
        group = self.crashing
        self.load.begin(producers=3, consumers=3)
        try:
            self.wait_for_jobs(200)
            pids = group.pids()
            group.kill()
            wait_for(lambda: not any(map(alive, pids.values())), "the children have ended", 20)
        finally:
            self.load.end()
        log = group.log()
        self.assertEqual(3, log.count("The parent process is gone"))
        self.assertEqual(3, log.count("bye bye"))
        group.start()
        self.judge()

    def test_hangs(self) -> None:
        """A process that does not run any more, although it exists, is replaced after a few
        seconds."""
        group = self.crashing
        pid = group.pids()[2]
        os.kill(pid, signal.SIGSTOP)
        wait_for(lambda: not alive(pid), "the process is killed")
        group.wait_until_joined()
        self.assertIn("Process 2 does not report any more", group.log())

    def test_parent_stopped_for_a_while(self) -> None:
        """When the parent was suspended, nobody is blamed for it."""
        group = self.crashing
        pids = group.pids()
        os.kill(group.pid, signal.SIGSTOP)
        time.sleep(7)
        os.kill(group.pid, signal.SIGCONT)
        time.sleep(2)
        self.assertEqual(pids, group.pids())
