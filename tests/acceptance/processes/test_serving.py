"""Several processes that serve as one daemon."""

from __future__ import annotations

import os
import signal
import socket
import ssl
from pathlib import Path

from tests.acceptance.daemon import free_port, wait_for
from tests.acceptance.processes.group import Group, GroupTestCase, alive
from tests.acceptance.resp import Connection
from tests.services.net.certificates import Authority


def spread(group: Group, clients: list[Connection]) -> list[int]:
    """How many of the clients each process serves."""
    counts = dict.fromkeys(group.rows(), 0)
    numbers = {row["node"]: number for number, row in group.rows().items()}
    for client in clients:
        counts[numbers[client.call("CLUSTER", "MYID").decode()]] += 1
    return sorted(counts.values())


def watch(group: Group) -> list[Connection]:
    """One client at each process' own port, once the parent knows of these and no other ones: it
    learns from reports that those which waited for the start have left."""
    clients = [group.client((group.ip, group.own_port(number))) for number in group.rows()]

    def fields(client: Connection, section: str) -> dict[str, str]:
        text = client.call("INFO", section).decode()
        return dict(line.split(":", 1) for line in text.splitlines() if ":" in line)

    def is_known() -> bool:
        received = sum(int(fields(c, "stats")["total_connections_received"]) for c in clients)
        reported = fields(clients[0], "processes")
        return reported["all_connected_clients"] == str(len(clients)) and reported[
            "all_total_connections_received"
        ] == str(received)

    wait_for(is_known, "the parent knows of all connections")
    return clients


class ServingTests(GroupTestCase):
    """Three processes on one port."""

    def test_few_connections(self) -> None:
        """Eight connections are spread evenly, so that no core is idle while another one has twice
        the work."""
        group = self.group(3).start()
        clients = watch(group) + [group.client() for _ in range(5)]
        self.assertEqual([2, 3, 3], spread(group, clients))

    def test_many_connections(self) -> None:
        """Five hundred connections are spread evenly, too: no process has three more than
        another one."""
        group = self.group(3).start()
        counts = spread(group, [group.client() for _ in range(500)])
        self.assertEqual(500, sum(counts))
        self.assertLessEqual(counts[-1] - counts[0], 3)

    def test_own_connection(self) -> None:
        """What a client adds and fetches on one connection stays with its process, and costs the
        others nothing."""
        group = self.group(3).start()
        client = group.client()
        for _ in range(100):
            added = client.call("ADDJOB", "q", "body", 0, "REPLICATE", 1)
            ((_queue, job_id, _body),) = client.call("GETJOB", "NOHANG", "FROM", "q")
            self.assertEqual(added, job_id.decode())
            client.call("ACKJOB", added)
        mine = client.call("CLUSTER", "MYID").decode()
        for number, row in group.rows().items():
            port = group.own_port(number)
            text = group.ask(port, "INFO", "totals").decode()
            expected = 100 if row["node"] == mine else 0
            self.assertIn(f"total_jobs_added:{expected}\r\n", text)

    def test_own_ports(self) -> None:
        """HELLO shows a port for each process, at which a client reaches that one and no other."""
        group = self.group(3).start()
        _version, mine, *nodes = group.client().call("HELLO")
        self.assertIn(mine, [node[0] for node in nodes])
        self.assertEqual({group.own_port(n) for n in (1, 2, 3)}, {int(node[2]) for node in nodes})
        for node_id, ip, port, _priority in nodes:
            client = group.client((ip.decode(), int(port)))
            self.assertEqual(node_id, client.call("CLUSTER", "MYID"))

    def test_configured_ports(self) -> None:
        """The own ports can be moved to where a firewall lets them through."""
        group = self.group(2)
        group.words += ["--process-port", str(group.port + 4)]
        group.start()
        ports = {int(row["port"]) for row in group.rows().values()}
        self.assertEqual({group.port + 4, group.port + 5}, ports)

    def test_unix_socket(self) -> None:
        """Connections at the Unix socket are spread, too."""
        path = self.short_folder() / "d.sock"
        group = self.group(3, f"unixsocket {path}").start()
        clients = watch(group) + [group.client(str(path)) for _ in range(6)]
        self.assertEqual([3, 3, 3], spread(group, clients))

    def test_tls(self) -> None:
        """A listener with TLS is served by all processes, and SIGHUP gives all a new
        certificate."""
        folder, port = self.folder(), free_port()
        authority = Authority(folder, "authority")
        certificate, key = authority.issue("node")
        group = self.group(
            2,
            f"listen resp ssl:{port}:privateKey={key}:certKey={certificate}:interface=127.0.0.1",
        ).start()
        self.assertEqual(2, len({tls_id(port) for _ in range(6)}))
        authority.issue("node")
        os.kill(group.pid, signal.SIGHUP)
        new = Path(certificate).read_text()
        for _ in range(4):
            wait_for(
                lambda: ssl.get_server_certificate((group.ip, port)) == new,
                "a process has the new certificate",
            )

    def test_info(self) -> None:
        """INFO processes shows each process, and the sums that a graph of the daemon needs; INFO
        without a section stays that of one node."""
        group = self.group(2).start()
        watch(group)
        clients = [group.client() for _ in range(4)]
        for client in clients:
            client.call("ADDJOB", "q", "body", 0, "REPLICATE", 1)
        wait_for(lambda: group.section()["all_registered_jobs"] == "4", "the jobs are reported")
        section = group.section()
        self.assertEqual("2", section["processes"])
        rows = group.rows()
        self.assertEqual({"2"}, {row["jobs"] for row in rows.values()})
        for number, row in rows.items():
            self.assertTrue(alive(int(row["pid"])))
            self.assertEqual(("ready", "0"), (row["state"], row["restarts"]))
            info = group.ask(group.own_port(number), "INFO").decode()
            self.assertIn(f"process_id:{row['pid']}\r\n", info)
            self.assertIn("registered_jobs:2\r\n", info)
            self.assertNotIn("# Processes", info)

    def test_met_by_the_port_of_all(self) -> None:
        """A node of another host meets the daemon at the port that everybody knows, and learns all
        of its processes."""
        group = self.group(3).start()
        other = self.daemon().start()
        other.client().call("CLUSTER", "MEET", group.ip, group.port)
        ports = [group.own_port(number) for number in (1, 2, 3)] + [other.port]
        wait_for(lambda: all(group.reachable(port) == 3 for port in ports), "all know all")
        _version, _mine, *nodes = other.client().call("HELLO")
        self.assertEqual(sorted(ports), sorted(int(node[2]) for node in nodes))

    def test_restart_without_meet(self) -> None:
        """After a restart the processes are the same nodes, and find each other."""
        group = self.group(3, "appendonly yes").start()
        before = {number: row["node"] for number, row in group.rows().items()}
        self.assertEqual(0, group.terminate())
        group.start()
        self.assertEqual(before, {number: row["node"] for number, row in group.rows().items()})

    def test_folders(self) -> None:
        """Each process has a folder, and a log of what it does, of its own."""
        group = self.group(2, "appendonly yes", "logfile disque.log").start()
        for number in (1, 2):
            folder = group.folder / f"process-{number}"
            names = {path.name for path in folder.iterdir()}
            self.assertLessEqual({"disque.aof", "nodes.conf", "disque.log"}, names)
        log = group.folder / "disque.log"
        wait_for(lambda: "All 2 processes serve clients" in log.read_text(), "they are ready")


def tls_id(port: int) -> bytes:
    """The ID of the process that serves a connection with TLS."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with socket.create_connection(("127.0.0.1", port)) as raw, context.wrap_socket(raw) as sock:
        sock.sendall(b"CLUSTER MYID\r\n")
        data = b""
        while data.count(b"\n") < 2:
            data += sock.recv(100)
        return data.split(b"\r\n")[1]
