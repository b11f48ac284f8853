"""Nodes find each other by names, and nothing else; no operator introduces any."""

from __future__ import annotations

import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Final

from tests.acceptance.cluster.fleet import sees
from tests.acceptance.cluster.nameserver import Names
from tests.acceptance.cluster.node import Node
from tests.acceptance.daemon import (
    BUS_OFFSET,
    DaemonTestCase,
    environment,
    free_port,
    wait_for,
)
from tests.acceptance.resp import ReplyError

NAME = "disque.example"
_ROOT: Final = Path(__file__).resolve().parents[3]
_WORK: Final = "from disque_tx.cli.verbs.workers.work import command; command()"
#: The default of ``cluster-discovery-interval``, in which nodes must have found each other thrice.
INTERVAL_S = 10.0


class DiscoveryCase(DaemonTestCase):
    """Nodes at addresses of this host, with one port, and a name server."""

    def setUp(self) -> None:
        super().setUp()
        self.names = Names()
        self.addCleanup(self.names.stop)
        self.port = free_port()

    def node(self, number: int, *directives: str, interval_s: int = 1, port: int = 0) -> Node:
        """A node at 127.0.0.``number`` that looks for others at the name; not started."""
        node = Node(
            self.folder(),
            f"127.0.0.{number}",
            f"port {port or self.port}",
            f"cluster-discovery-interval {interval_s}",
            f"cluster-discovery-nameservers {self.names.address}",
            *(directives or (f"cluster-discovery dns:{NAME}",)),
        )
        node.port = port or self.port
        node.bus_port = node.port + BUS_OFFSET
        self.addCleanup(node.discard)
        return node

    def ready(self, number: int, *directives: str, interval_s: int = 1) -> Node:
        """The same, started."""
        node = self.node(number, *directives, interval_s=interval_s)
        node.boot()
        return node

    def list_nodes(self, *nodes: Node) -> None:
        """The name has the addresses of these nodes."""
        self.names.hosts(NAME, [node.ip for node in nodes])

    def wait_until_one(self, *nodes: Node, timeout_s: float = 60.0) -> None:
        """Wait until these nodes are one cluster, of which nobody else is a member."""
        ids = {node.id for node in nodes}
        wait_for(lambda: all(sees(node, ids) for node in nodes), "one cluster", timeout_s)

    def field(self, node: Node, name: str) -> str:
        """A field of INFO ALL."""
        lines: list[str] = node.call("INFO", "all").decode().splitlines()
        return next(line.partition(":")[2] for line in lines if line.startswith(f"{name}:"))


class StartTests(DiscoveryCase):
    """Nodes are started."""

    def test_any_order(self) -> None:
        """Three nodes that are given a name and a password, and are started one after the other,
        are one cluster within three intervals after the last start; each served at once."""
        words = (f"cluster-discovery dns:{NAME}", "requirepass secret")
        self.names.hosts(NAME, ["127.0.0.3", "127.0.0.1", "127.0.0.2"])
        nodes = []
        for number in (2, 3, 1):
            node = self.node(number, *words, interval_s=round(INTERVAL_S))
            node.spawn()
            node.alive = True
            wait_for(partial(login, node, "secret"), "it serves")
            nodes.append(node)
            self.assertEqual(40, len(node.add("q")))
        self.wait_until_one(*nodes, timeout_s=3 * INTERVAL_S)
        self.assertEqual(40, len(nodes[0].add("q", replicate=3)))

    def test_wait_for(self) -> None:
        """A node that waits for another one gives clients LOADING until it reaches that."""
        waiting = self.node(1, f"cluster-discovery dns:{NAME}", "cluster-wait-for 2")
        self.list_nodes(waiting)
        waiting.boot()
        text = "LOADING This node waits until it reaches 2 nodes, and reaches 1"
        self.assertEqual(text, waiting.error("QLEN", "q"))
        other = self.ready(2)
        self.list_nodes(waiting, other)
        wait_for(lambda: waiting.error("QLEN", "q") == "0", "it serves")
        self.wait_until_one(waiting, other)

    def test_processes(self) -> None:
        """Daemons of two processes each, which share an address and a port, find each other."""
        words = (f"cluster-discovery dns:{NAME}", "processes 2", f"process-port {free_port()}")
        self.names.hosts(NAME, ["127.0.0.1", "127.0.0.2"])
        nodes = [self.ready(number, *words) for number in (1, 2)]
        wait_for(
            lambda: all(
                len(node.table()) == 4 and all(linked for _, linked in node.table().values())
                for node in nodes
            ),
            "four nodes",
        )


class ChangeTests(DiscoveryCase):
    """What name servers answer changes."""

    def test_changes(self) -> None:
        """A node that is listed later joins. When the name vanishes, or nobody answers, nobody is
        dropped, the reason is shown, and a node that was found goes on to be a member."""
        first, second = self.node(1), self.node(2)
        self.list_nodes(first)
        first.boot()
        second.boot()
        self.list_nodes(first, second)
        self.wait_until_one(first, second)
        self.names.hosts(NAME, [])
        why = f"dns:{NAME}: there is no such name"
        wait_for(lambda: self.field(first, "discovery_error") == why, "the reason")
        self.names.silence(NAME, True)
        why = f"dns:{NAME}: no name server answers"
        wait_for(lambda: self.field(first, "discovery_error") == why, "the other reason")
        self.assertTrue(sees(first, {first.id, second.id}))
        self.names.silence(NAME, False)
        self.list_nodes(first, second)
        wait_for(lambda: self.field(first, "discovery_error") == "", "it works again")
        self.assertEqual(2, first.log().count("finds no nodes"))

    def test_lies(self) -> None:
        """Among a thousand addresses, where nobody is, the nodes find each other."""
        lies = [f"127.9.{number // 250}.{number % 250 + 1}" for number in range(998)]
        self.names.hosts(NAME, [*lies[:400], "127.0.0.1", "127.0.0.2", *lies[400:]])
        first, second = self.ready(1, interval_s=10), self.ready(2, interval_s=10)
        self.wait_until_one(first, second, timeout_s=3 * INTERVAL_S)
        self.assertEqual("1000", self.field(first, "discovery_addresses"))
        self.assertEqual(40, len(first.add("q", replicate=2)))

    def test_services(self) -> None:
        """SRV records say at which ports nodes are."""
        words = "cluster-discovery srv:_disque._tcp.example"
        nodes = [self.node(1, words, port=free_port()) for _ in range(3)]
        self.names.hosts("host.example", ["127.0.0.1"])
        targets = [("host.example", node.port) for node in nodes]
        self.names.services("_disque._tcp.example", targets)
        for node in nodes:
            node.boot()
        self.wait_until_one(*nodes)

    def test_file(self) -> None:
        """A node that is written into a file is found without a restart."""
        path = self.folder() / "nodes"
        first = self.ready(1, f"cluster-discovery file:{path}")
        second = self.ready(2, "cluster-discovery static:127.0.0.2")
        path.write_text(f"# nodes\n{second.ip}:{second.port}\n")
        self.wait_until_one(first, second)

    def test_all_moved(self) -> None:
        """All addresses change at once: the nodes find each other within three intervals, keep
        their IDs, and have their jobs."""
        nodes = [self.node(number, interval_s=10) for number in (1, 2, 3)]
        for node in nodes:
            node.words += ["--appendonly", "yes"]
        self.list_nodes(*nodes)
        for node in nodes:
            node.boot()
        self.wait_until_one(*nodes, timeout_s=3 * INTERVAL_S)
        ids = [node.id for node in nodes]
        job_id = nodes[0].add("q", replicate=3)
        for node in nodes:
            node.stop()
        for number, node in enumerate(nodes, 11):
            node.ip = f"127.0.0.{number}"
            node.words[node.words.index("--bind") + 1] = node.ip
        self.list_nodes(*nodes)
        for node in nodes:
            node.boot()
        self.wait_until_one(*nodes, timeout_s=3 * INTERVAL_S)
        self.assertEqual(ids, [node.call("CLUSTER", "MYID").decode() for node in nodes])
        self.assertEqual([True] * 3, [bool(node.state(job_id)) for node in nodes])


class ClientTests(DiscoveryCase):
    """Programs that are given the name, and no node."""

    def test_worker(self) -> None:
        """A worker finds the nodes by the name, new ones that take the place of all others, too."""
        nodes = [self.node(number) for number in (1, 2, 3, 4)]
        before, after = nodes[:2], nodes[2:]
        self.list_nodes(*before)
        for node in before:
            node.boot()
        self.wait_until_one(*before)
        done = self.folder() / "done"
        done.touch()
        url = f"disque+dns://{NAME}:{self.port}"
        handler = ("tests.worker.handlers:note", "--queue", "jobs")
        worker = subprocess.Popen(
            [sys.executable, "-c", _WORK, *handler, "--addresses", url],
            cwd=_ROOT,
            env=environment(DONE=str(done), DISQUE_NAMESERVERS=self.names.address),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.addCleanup(worker.wait)
        self.addCleanup(worker.kill)
        before[1].add("jobs", "one")
        wait_for(lambda: done.read_text() == "one\n", "the first job is done")
        self.list_nodes(*after)
        for node in before:
            node.stop()
        for node in after:
            node.boot()
        self.wait_until_one(*after)
        after[0].add("jobs", "two")
        wait_for(lambda: done.read_text() == "one\ntwo\n", "the second job is done")


class ApartTests(DiscoveryCase):
    """Two clusters, and nodes that are gone."""

    def two_clusters(self, one: str, other: str) -> list[list[Node]]:
        """Two nodes with each of two directives, all in one name; they have become clusters."""
        self.names.hosts(NAME, [f"127.0.0.{number}" for number in (1, 2, 3, 4)])
        groups = [
            [self.ready(number, f"cluster-discovery dns:{NAME}", words) for number in numbers]
            for numbers, words in (((1, 2), one), ((3, 4), other))
        ]
        for group in groups:
            self.wait_until_one(*group)
        first = groups[0][0]
        wait_for(lambda: int(self.field(first, "cluster_names_refused")) >= 4, "more refusals")
        for group in groups:
            self.wait_until_one(*group, timeout_s=1.0)
        return groups

    def test_names(self) -> None:
        """Clusters of two names stay two, and the nodes of the other are named in the log."""
        (first, _), theirs = self.two_clusters("cluster-name shop", "cluster-name stage")
        lines = [f"node {node.id} at {node.ip}: refused" for node in theirs]
        wait_for(lambda: all(line in first.log() for line in lines), "both are named in the log")
        self.assertEqual("shop", self.field(first, "cluster_name"))

    def test_passwords(self) -> None:
        """Without names, clusters with two passwords stay two."""
        self.names.hosts(NAME, [f"127.0.0.{number}" for number in (1, 2, 3, 4)])
        nodes = [self.node(n, f"cluster-discovery dns:{NAME}") for n in (1, 2, 3, 4)]
        for node, password in zip(nodes, ("one", "one", "two", "two"), strict=True):
            node.words += ["--requirepass", password]
            node.spawn()
            node.alive = True
            wait_for(partial(login, node, password), "it serves")
        for group in (nodes[:2], nodes[2:]):
            self.wait_until_one(*group)
        refused = "cluster_names_refused"
        wait_for(lambda: int(self.field(nodes[0], refused)) >= 4, "more refusals")
        for group in (nodes[:2], nodes[2:]):
            self.wait_until_one(*group, timeout_s=1.0)

    def test_reused(self) -> None:
        """The address of a member now belongs to a node of another cluster: that is refused, and
        the member is found at its new address."""
        first = self.ready(1, f"cluster-discovery dns:{NAME}", "cluster-name shop")
        second = self.ready(2, f"cluster-discovery dns:{NAME}", "cluster-name shop")
        self.list_nodes(first, second)
        self.wait_until_one(first, second)
        second.stop()
        second.ip = "127.0.0.12"
        second.words[second.words.index("--bind") + 1] = second.ip
        stranger = self.ready(2, f"cluster-discovery dns:{NAME}", "cluster-name stage")
        self.names.hosts(NAME, [first.ip, stranger.ip, second.ip])
        second.boot()
        self.wait_until_one(first, second)
        wait_for(lambda: f"node {stranger.id} at" in first.log(), "the stranger is named")
        self.assertEqual({stranger.id}, set(stranger.table()))

    def test_forgotten(self) -> None:
        """A node that has failed for some time is forgotten by all, those without the setting too,
        and is a member again when it comes back."""
        nodes = [self.node(number) for number in (1, 2, 3, 4)]
        nodes[0].words += ["--cluster-forget-after", "2"]
        self.list_nodes(*nodes)
        for node in nodes:
            node.boot()
        self.wait_until_one(*nodes)
        nodes[3].kill()
        self.wait_until_one(*nodes[:3])
        time.sleep(5.0)
        self.wait_until_one(*nodes[:3], timeout_s=1.0)
        nodes[3].boot()
        self.wait_until_one(*nodes)


def login(node: Node, password: str) -> bool:
    """Whether the node serves, with its password given."""
    try:
        return bool(node.call("AUTH", password) == "OK")
    except (OSError, ReplyError):
        return False
