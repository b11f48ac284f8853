"""Daemons that form a cluster, and test cases that share one."""

from __future__ import annotations

import atexit
import contextlib
import tempfile
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from tests.acceptance.cluster.node import NODE_TIMEOUT_S, Node
from tests.acceptance.cluster.proxy import Proxy
from tests.acceptance.daemon import DaemonTestCase, wait_for
from tests.acceptance.resp import ClosedError, Connection

#: A time limit for nodes to agree on failures or recoveries, for a busy machine.
AGREE_S = 120.0
_T = TypeVar("_T")


class Fleet:
    """``size`` nodes at 127.0.0.1, 127.0.0.2, and so on. ``proxy``: between the nodes, if
    requested."""

    def __init__(self, size: int, *directives: str, proxied: bool = False) -> None:
        root = Path(tempfile.mkdtemp(prefix="fleet-", dir=".")).resolve()
        self.proxy = Proxy() if proxied else None
        self.nodes: list[Node] = []
        for number in range(1, size + 1):
            folder = root / f"node{number}"
            folder.mkdir()
            self.nodes.append(Node(folder, f"127.0.0.{number}", *directives))
        if self.proxy is not None:
            for node in self.nodes:
                node.announce(self.proxy.front(node.ip, node.bus_port))

    def start(self) -> Fleet:
        """Start all nodes and join them into a cluster."""
        self.each(Node.boot)
        first, *others = self.nodes
        for node in others:
            first.call("CLUSTER", "MEET", node.ip, node.port, node.bus_port)
        return self.wait_until_agreed()

    def each(self, work: Callable[[Node], _T], nodes: Iterable[Node] | None = None) -> list[_T]:
        """Call a function with each node, in parallel."""
        chosen = self.nodes if nodes is None else list(nodes)
        with ThreadPoolExecutor(max(1, len(chosen))) as pool:
            return list(pool.map(work, chosen))

    def living(self) -> list[Node]:
        """The nodes that are running."""
        return [node for node in self.nodes if node.alive]

    def wait_until_agreed(self) -> Fleet:
        """Wait until every node sees every other one as reachable."""
        wanted = {node.id for node in self.nodes}
        wait_for(lambda: all(sees(node, wanted) for node in self.nodes), "all nodes agree", AGREE_S)
        return self

    def heal(self, node_timeout_s: float) -> Fleet:
        """Restore the initial state: all nodes run and agree, and there are no jobs."""
        if self.proxy is not None:
            self.proxy.heal()
        for node in self.nodes:
            ended = node.process is None or node.process.poll() is not None
            if not node.alive and not ended:
                node.resume()
            node.alive = not ended
        self.each(Node.boot)
        for node in self.nodes:
            node.call("CLUSTER", "LEAVING", "no")
            node.call("CONFIG", "SET", "maxmemory", "1gb")
            node.call("CONFIG", "SET", "cluster-node-timeout", round(node_timeout_s * 1000))
        self.wait_until_agreed()
        # Messages sent before a node was flushed may arrive at another one after its flush.
        for _ in range(3):
            self.each(lambda node: node.call("DEBUG", "FLUSHALL"))
        return self

    def discard(self) -> None:
        """Kill all processes."""
        for node in self.nodes:
            node.discard()
        if self.proxy is not None:
            self.proxy.close()

    # -- on all nodes ------------------------------------------------------------------------

    def holders(self, job_id: str) -> list[Node]:
        """The running nodes that have the job."""
        return [node for node in self.living() if node.state(job_id)]

    def queued(self, queue: str) -> int:
        """The number of nodes on which a job of the queue can be fetched."""
        return sum(int(node.call("QLEN", queue)) for node in self.living())

    def jobs(self) -> int:
        """The number of jobs, summed over all nodes."""
        return sum(node.jobs() for node in self.living())

    def fetch(self, queue: str, for_s: float, until: int = 1 << 30) -> list[tuple[Node, str]]:
        """Fetch from all running nodes in turn for some time, or until there were ``until``
        deliveries."""
        deliveries: list[tuple[Node, str]] = []
        deadline = time.monotonic() + for_s
        while time.monotonic() < deadline and len(deliveries) < until:
            for node in self.living():
                deliveries += [(node, job_id) for job_id in node.get(queue, count=100)]
            time.sleep(0.02)
        return deliveries

    def wait_until_empty(self, timeout_s: float = 400.0) -> None:
        """Wait until no node has any job. Attempts that failed, for example while a node was
        suspended, are repeated after up to three minutes."""
        try:
            wait_for(lambda: self.jobs() == 0, "all nodes are empty", timeout_s)
        except AssertionError as error:
            raise AssertionError(f"{error}: {self.remaining()}") from None

    def remaining(self) -> list[tuple[str, dict[str, Any]]]:
        """All jobs on all nodes: the ID of the node, and its reply to SHOW."""
        return [
            (node.id[:8], node.show(job_id.decode()))
            for node in self.living()
            for job_id in node.call("JSCAN", 0, "COUNT", 100_000)[1]
        ]


def sees(node: Node, others: set[str]) -> bool:
    """Whether a node knows exactly these nodes, sees all of them as reachable, and has links to
    them."""
    table = node.table()
    return set(table) == others and all(
        linked and flags <= {"myself", "noflags"} for flags, linked in table.values()
    )


_shared: dict[tuple[object, ...], Fleet] = {}


def _discard_shared() -> None:
    while _shared:
        _shared.popitem()[1].discard()


atexit.register(_discard_shared)


def shared(
    size: int, *directives: str, proxied: bool = False, node_timeout_s: float = NODE_TIMEOUT_S
) -> Fleet:
    """A healed fleet of this kind. Test cases of the same kind share one; there is only one at a
    time."""
    key = (size, proxied, *directives)
    if key not in _shared:
        _discard_shared()
        _shared[key] = fleet = Fleet(size, *directives, proxied=proxied)
        fleet.start()
    return _shared[key].heal(node_timeout_s)


class FleetTestCase(DaemonTestCase):
    """Tests with a fleet that is healed before each of them.

    ``size``, ``directives``, ``proxied``: the kind of fleet. ``node_timeout_s``: by default so long
    that no node is suspected because the machine is busy. ``queue``: a queue for this test only.
    """

    size = 7
    directives: tuple[str, ...] = ()
    proxied = False
    node_timeout_s = 20.0

    def setUp(self) -> None:
        """Get the fleet."""
        self.fleet = shared(
            self.size, *self.directives, proxied=self.proxied, node_timeout_s=self.node_timeout_s
        )
        self.nodes = self.fleet.nodes
        self.queue = self.id().rsplit(".", 1)[1]

    def wait(self, condition: Callable[[], Any], what: str, timeout_s: float = AGREE_S) -> Any:
        """See :func:`wait_for`."""
        return wait_for(condition, what, timeout_s)

    def proxy(self) -> Proxy:
        """The proxy between the nodes."""
        assert self.fleet.proxy is not None
        return self.fleet.proxy

    def stays_true(self, condition: Callable[[], Any], for_s: float, what: str) -> None:
        """Assert that a condition stays true for some time."""
        deadline = time.monotonic() + for_s
        while time.monotonic() < deadline:
            if not condition():
                self.fail(f"No longer true: {what}")
            time.sleep(0.02)

    def blocked_client(self, node: Node, queue: str, *options: str | int) -> Connection:
        """A client that is blocked in GETJOB."""
        client = node.client()
        before = int(node.info()["blocked_clients"])
        client.send("GETJOB", *options, "FROM", queue)
        with contextlib.suppress(ClosedError):
            wait_for(lambda: int(node.info()["blocked_clients"]) > before, "the client is blocked")
        return client
