"""Jobs with keys in a daemon of several processes, of which one dies and comes back."""

from __future__ import annotations

import os
import signal
import time
from typing import Any, Final

from tests.acceptance.daemon import DaemonTestCase, wait_for
from tests.acceptance.processes.group import Group

_ROUNDS: Final = int(os.environ.get("DISQUE_TX_ROUNDS", "1"))
_KEYS: Final = 60


class KeyTests(DaemonTestCase):
    """Three processes with a log."""

    def test_process_returns(self) -> None:
        """A process that is back within a second ends none of the jobs that were added with keys of
        jobs which are done."""
        group = Group(self.folder(), 3, "appendonly yes", "appendfsync always")
        self.addCleanup(group.discard)
        group.start()
        port = self.ports(group)[0]
        for turn in range(_ROUNDS):
            done = self.add_all(group, turn)
            last = max(group.pids())
            pid = group.pids()[last]
            os.kill(pid, signal.SIGKILL)
            for job_id in done:
                group.ask(port, "ACKJOB", job_id)
            wanted = self.add_all(group, turn)
            wait_for(lambda: group.pids().get(last, pid) != pid, "the process is back")  # noqa: B023
            group.wait_until_joined()
            time.sleep(6)
            self.fetch_all(group, set(wanted))

    @staticmethod
    def ports(group: Group) -> list[int]:
        """The ports of the processes, by which no connection is passed on to another one."""
        return [int(row["port"]) for _, row in sorted(group.rows().items())]

    def fetch_all(self, group: Group, wanted: set[str]) -> None:
        """Wait until these jobs are delivered, by any process."""
        found: set[str] = set()

        def fetch() -> bool:
            for port in self.ports(group):
                words = ("GETJOB", "NOHANG", "COUNT", 100, "FROM", "q")
                for _, job_id, _ in group.ask(port, *words) or []:
                    group.ask(port, "ACKJOB", job_id.decode())
                    found.add(job_id.decode())
            return wanted <= found

        wait_for(fetch, "every job that was answered as new is delivered")

    def add_all(self, group: Group, turn: int) -> list[str]:
        """New jobs, one with each key."""
        ids: list[str] = []
        for number in range(_KEYS):
            answer: Any = group.ask(
                self.ports(group)[0],
                *("ADDJOB", "q", "body", 20_000, "REPLICATE", 2, "RETRY", 300),
                *("UNIQUE", f"key-{turn}-{number}", "WITHNEW"),
            )
            self.assertEqual(1, answer[1])
            ids.append(answer[0].decode())
        return ids
