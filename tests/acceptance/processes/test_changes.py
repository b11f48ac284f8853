"""Another number of processes, by a restart."""

from __future__ import annotations

import os
import signal

from tests.acceptance.daemon import wait_for
from tests.acceptance.load import add_many
from tests.acceptance.processes.group import Group, GroupTestCase

LOG = ("appendonly yes", "cluster-node-timeout 3000")


class ChangeTests(GroupTestCase):
    """The jobs that were there before are delivered after."""

    def fill(self, group: Group, per_process: int = 40) -> set[str]:
        """Jobs on every process, which are queued again soon after a restart."""
        added: list[str] = []
        for row in group.rows().values():
            client = group.client((group.ip, int(row["port"])))
            added += add_many(client, per_process, "q", "REPLICATE", "1", "RETRY", "1")
        return set(added)

    def drain(self, group: Group, wanted: set[str]) -> None:
        """Fetch at the port of all until every job has come."""
        client, got = group.client(), set[str]()

        def fetched() -> bool:
            jobs = client.call("GETJOB", "TIMEOUT", 500, "COUNT", 100, "FROM", "q") or []
            ids = [job[1].decode() for job in jobs]
            if ids:
                client.call("ACKJOB", *ids)
                got.update(ids)
            return got >= wanted

        wait_for(fetched, "all jobs are delivered")
        self.assertEqual(wanted, got)

    def restart(self, group: Group, processes: int, expected: int) -> None:
        """Stop the daemon, and start it with another number; so many processes serve then."""
        self.assertEqual(0, group.terminate())
        group.set_processes(processes)
        group.spawn()
        group.wait_until_ready(expected)

    def wait_for_files(self, group: Group, names: set[str]) -> None:
        """Wait until there are nodes files in these folders only; empty for that of the daemon."""

        def found() -> set[str]:
            paths = group.folder.glob("**/nodes.conf")
            return {str(path.parent.relative_to(group.folder)) for path in paths}

        wait_for(lambda: found() == names, f"only {names} are left", 60)

    def test_fewer(self) -> None:
        """Processes that are not wanted give their jobs to the others and end; their files are
        removed when they are empty, and their nodes are forgotten."""
        group = self.group(4, *LOG).start()
        jobs = self.fill(group)
        self.restart(group, 2, 4)
        self.assertEqual(4, len(group.rows()))
        self.drain(group, jobs)
        self.wait_for_files(group, {"process-1", "process-2"})
        group.wait_until_joined()
        nodes = group.client().call("CLUSTER", "NODES").decode().splitlines()
        self.assertEqual(2, len(nodes))

    def test_surplus_takes_nothing(self) -> None:
        """New connections and new jobs go to the processes that stay."""
        group = self.group(3, *LOG).start()
        jobs = self.fill(group)
        self.restart(group, 1 + 1, 3)
        clients = [group.client() for _ in range(6)]
        surplus = group.rows()[3]["node"]
        ids = {client.call("CLUSTER", "MYID").decode() for client in clients}
        self.assertEqual(2, len(ids))
        self.assertNotIn(surplus, ids)
        self.drain(group, jobs)

    def test_more(self) -> None:
        """More processes leave the jobs of those before untouched."""
        group = self.group(2, *LOG).start()
        jobs = self.fill(group)
        before = {row["node"] for row in group.rows().values()}
        self.restart(group, 4, 4)
        self.assertLess(before, {row["node"] for row in group.rows().values()})
        self.drain(group, jobs)

    def test_from_one_and_back(self) -> None:
        """A daemon of one process becomes several, and one again: each time its former node, in the
        daemon's own folder, gives its jobs to the new ones."""
        group = self.group(1, *LOG)
        super(Group, group).start()
        added = set(add_many(group.client(), 40, "q", "REPLICATE", "1", "RETRY", "1"))
        self.restart(group, 2, 3)
        self.drain(group, added)
        self.wait_for_files(group, {"process-1", "process-2"})
        group.wait_until_joined(2)
        jobs = self.fill(group)
        self.restart(group, 1, 3)
        self.drain(group, jobs)
        self.wait_for_files(group, {"."})

    def test_crash_meanwhile(self) -> None:
        """A crash of everything in the middle of the change loses nothing."""
        group = self.group(3, *LOG, "appendfsync always").start()
        jobs = self.fill(group)
        self.restart(group, 2, 3)
        for pid in (group.pid, *group.pids().values()):
            os.kill(pid, signal.SIGKILL)
        group.wait()
        group.spawn()
        group.wait_until_ready(3)
        self.drain(group, jobs)
        self.wait_for_files(group, {"process-1", "process-2"})

    def test_wanted_again(self) -> None:
        """A process that was about to go and is wanted again takes jobs as before, with its
        node."""
        group = self.group(3, *LOG).start()
        jobs = self.fill(group)
        node = group.rows()[3]["node"]
        self.restart(group, 2, 3)
        self.restart(group, 3, 3)
        self.assertEqual(node, group.rows()[3]["node"])
        own = group.client((group.ip, group.own_port(3)))
        self.assertEqual("no", own.call("CLUSTER", "LEAVING"))
        self.drain(group, jobs)

    def test_operator_lets_leave(self) -> None:
        """A process that an operator lets leave the cluster stays so over restarts, as any node
        does."""
        group = self.group(2, *LOG).start()
        own = group.client((group.ip, group.own_port(2)))
        own.call("CLUSTER", "LEAVING", "yes")
        self.assertEqual(0, group.terminate())
        group.spawn()
        wait_for(group.serves, "the daemon serves")
        own = group.client((group.ip, group.own_port(2)))
        self.assertEqual("yes", own.call("CLUSTER", "LEAVING"))
