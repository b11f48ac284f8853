"""Daemons of several processes on several hosts, which loopback addresses stand for."""

from __future__ import annotations

import socket
from functools import partial
from unittest import SkipTest

from tests.acceptance.daemon import wait_for
from tests.acceptance.processes.group import Group, GroupTestCase

#: A reserved address for documentation; nothing is sent there.
_ANYWHERE = ("192.0.2.1", 9)


def keepers(groups: list[Group], job_id: str) -> list[str]:
    """The hosts of the processes that have a copy of a job, as each says itself."""
    return [
        group.ip
        for group in groups
        for row in group.rows().values()
        if group.ask(int(row["port"]), "SHOW", job_id)
    ]


def members(group: Group, port: int) -> set[str]:
    """The IDs of all nodes that one process knows, whether they can be reached or not."""
    lines = group.ask(port, "CLUSTER", "NODES").decode().splitlines()
    return {line.split()[0] for line in lines}


def own_address() -> str:
    """The address of this machine that others would use; empty when it has none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        try:
            sock.connect(_ANYWHERE)
            return str(sock.getsockname()[0])
        except OSError:
            return ""


class TwoHostTests(GroupTestCase):
    """Two daemons of three processes, each on a host of its own."""

    def setUp(self) -> None:
        self.here = self.group(3, "cluster-node-timeout 3000").start()
        self.there = self.group(3, "cluster-node-timeout 3000", ip="127.0.0.2").start()
        self.here.client().call("CLUSTER", "MEET", self.there.ip, self.there.port)
        self.wait_until_joined(5)

    def wait_until_joined(self, others: int) -> None:
        """Wait until every process can reach so many others."""
        wait_for(
            lambda: all(
                group.reachable(int(row["port"])) == others
                for group in (self.here, self.there)
                for row in group.rows().values()
            ),
            "all processes know each other",
            120,
        )

    def hosts(self) -> dict[str, str]:
        """The IDs of all nodes, and the addresses that one of them has for them."""
        lines = self.here.client().call("CLUSTER", "NODES").decode().splitlines()
        return {line.split()[0]: line.split()[1].rsplit(":", 1)[0] for line in lines}

    def test_copies(self) -> None:
        """The copy of a job is on the other host, whichever process gets the job: when a host
        fails, its jobs are not lost."""
        hosts = self.hosts()
        self.assertEqual(["127.0.0.1"] * 3 + ["127.0.0.2"] * 3, sorted(hosts.values()))
        for group in (self.here, self.there):
            for number in (1, 2, 3):
                port = group.own_port(number)
                for _ in range(10):
                    job_id = group.ask(port, "ADDJOB", "q", "b", 20_000, "REPLICATE", 2)
                    # A third one has a copy where the second took more than 50 ms to answer.
                    found = keepers([self.here, self.there], job_id)
                    self.assertEqual({"127.0.0.1", "127.0.0.2"}, set(found))

    def test_other_host_fails(self) -> None:
        """While the other host is away, copies are made on this one."""
        self.there.terminate()
        wait_for(lambda: self.here.reachable(self.here.own_port(1)) == 2, "it is noticed", 60)
        port = self.here.own_port(1)
        job_id = self.here.ask(port, "ADDJOB", "q", "b", 20_000, "REPLICATE", 2)
        self.assertEqual(["127.0.0.1"] * 2, keepers([self.here], job_id))

    def test_fewer(self) -> None:
        """Processes that end are forgotten by those of their host; the daemon stays in the
        cluster."""
        every = set(self.hosts())
        ended = self.there.rows()[3]["node"]
        self.there.terminate()
        self.there.set_processes(2)
        self.there.spawn()
        self.there.wait_until_ready(2)
        ports = [self.there.own_port(number) for number in (1, 2)]

        def known() -> bool:
            return all(
                self.there.reachable(port) == 4 and members(self.there, port) == every - {ended}
                for port in ports
            )

        wait_for(known, "the others are reachable, and the one that ended is forgotten", 60)


class AddressTests(GroupTestCase):
    """A daemon that listens on all addresses, and does not know which one others use."""

    def test_learnt(self) -> None:
        """Once one process learns the address that other hosts use, all have it: what they gossip,
        and HELLO, is of use to others."""
        address = own_address()
        if not address or address.startswith("127."):
            raise SkipTest("this machine has no address for others")
        group = self.group(2, "cluster-insecure yes", "protected-mode no")
        place = group.words.index("--bind")
        del group.words[place : place + 2]
        group.start()
        other = self.group(1, "cluster-insecure yes", "protected-mode no", ip=address)
        super(Group, other).start()
        other.client().call("CLUSTER", "MEET", address, group.port)
        ports = [group.own_port(1), group.own_port(2)]
        expected = sorted(f"{address}:{port}" for port in [*ports, other.port])

        def knows_all(of: Group, port: int) -> bool:
            lines = of.ask(port, "CLUSTER", "NODES").decode().splitlines()
            return sorted(line.split()[1] for line in lines) == expected

        for of, port in [*((group, port) for port in ports), (other, other.port)]:
            wait_for(
                partial(knows_all, of, port),
                f"the node at {port} has the addresses that all can use",
                60,
            )
