"""The jobs whose leases are renewed, and the interval."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from disque_tx.client.blocking.servers import Servers
from disque_tx.client.options import ConnectionOptions
from disque_tx.spark.source.leases import Heartbeat, SourceLeases
from tests.client.scripted import ScriptedNode
from tests.spark.nodes import GONE, IDS, NodesTestCase, address_of

_LATE = b"-TOOLATE Half of job TTL already elapsed\r\n"


class LeasesTests(NodesTestCase):
    """WORKING requests to scripted nodes."""

    def renewed(self, node: ScriptedNode) -> list[bytes]:
        """The jobs in the requests to the node; clears the requests."""
        ids = [words[1] for words in node.requests]
        node.requests.clear()
        return ids

    def test_shortest_retry(self) -> None:
        """Leases are renewed three times within the shortest RETRY of the batch; jobs with RETRY 0
        need no renewal."""
        node = self.node(WORKING=[b":60\r\n", b":6\r\n", b":0\r\n", b":60\r\n"])
        servers = self.servers(node)
        leases = SourceLeases()
        leases.replace({address_of(node): IDS[:3]}, servers)
        self.assertEqual(2.0, leases.interval_s)
        self.renewed(node)
        leases.renew(servers)
        self.assertEqual([job_id.encode() for job_id in IDS[:2]], self.renewed(node))

    def test_nothing_to_renew(self) -> None:
        """Without jobs, or only with RETRY 0, there are no renewals."""
        node = self.node(WORKING=b":0\r\n")
        leases = SourceLeases()
        leases.replace({address_of(node): IDS[:2]}, self.servers(node))
        self.assertIsNone(leases.interval_s)
        leases.replace({}, self.servers(node))
        self.assertIsNone(leases.interval_s)

    def test_refused(self) -> None:
        """Jobs that are old, done or unknown are not renewed again; that they are old is logged
        once."""
        node = self.node(WORKING=[_LATE, GONE, b"-ACKED done\r\n", b":60\r\n", _LATE])
        servers = self.servers(node)
        leases = SourceLeases()
        with self.assertLogs("disque_tx.spark.source.leases", "WARNING") as logged:
            leases.replace({address_of(node): IDS[:4]}, servers)
            self.renewed(node)
            leases.renew(servers)
        self.assertEqual([IDS[3].encode()], self.renewed(node))
        self.assertEqual(1, len(logged.output))
        self.assertIn("half of the TTL", logged.output[0])

    def test_node_down(self) -> None:
        """After a node was down for a while, its jobs are renewed again."""
        node = self.node(WORKING=b":60\r\n")
        servers = self.servers(node)
        leases = SourceLeases()
        leases.replace({address_of(node): IDS[:1]}, servers)
        node.answer("WORKING", b"<hang up>")
        leases.renew(servers)
        self.assertEqual(20.0, leases.interval_s)
        node.answer("WORKING", b":6\r\n")
        leases.renew(servers)
        self.assertEqual(2.0, leases.interval_s)

    def test_next_batch_during_renewal(self) -> None:
        """When the next batch begins during a renewal, which runs in another thread, the jobs of
        the last one are not renewed again."""
        node = self.node(WORKING=b":60\r\n")
        leases = SourceLeases()
        leases.replace({address_of(node): IDS[:1]}, self.servers(node))
        leases.renew(
            Overtaken(
                node, lambda: leases.replace({address_of(node): IDS[1:3]}, self.servers(node))
            )
        )
        self.renewed(node)
        leases.renew(self.servers(node))
        self.assertEqual([job_id.encode() for job_id in IDS[1:3]], self.renewed(node))
        leases.renew(Overtaken(node, lambda: leases.replace({}, self.servers(node))))
        self.assertIsNone(leases.interval_s)


class HeartbeatTests(NodesTestCase):
    """The thread that renews."""

    def test_connections(self) -> None:
        """At the end of a query the connections of the thread are closed, also when the thread ends
        by an error."""
        node = self.node(WORKING=b":60\r\n")
        for fails in (False, True):
            leases, servers = Failing(fails), self.servers(node)
            leases.replace({address_of(node): IDS[:1]}, servers)
            leases.interval_s = 0
            heartbeat = Heartbeat(leases, lambda servers=servers: servers)  # type: ignore[misc]
            leases.renewed.wait()
            heartbeat.stop()
            heartbeat._thread.join()
            self.assertEqual({}, servers._connections)

    def test_refused(self) -> None:
        """An error of a node is logged, and the thread goes on."""
        node = self.node(WORKING=[b":60\r\n", b"-NOAUTH Authentication required.\r\n", b":60\r\n"])
        leases, servers = Failing(False), self.servers(node)
        leases.replace({address_of(node): IDS[:1]}, servers)
        leases.interval_s = 0
        heartbeat = Heartbeat(leases, lambda: servers)
        while len(node.requests) < 3:
            leases.renewed.wait()
        heartbeat.stop()
        heartbeat._thread.join()
        self.assertEqual({IDS[0].encode()}, {words[1] for words in node.requests})


class Failing(SourceLeases):
    """Leases whose renewal may fail for a reason that nobody thought of. ``renewed``: set when one
    was tried after the first."""

    def __init__(self, fails: bool) -> None:
        super().__init__()
        self.renewed = threading.Event()
        self._fails = fails
        self._first = True

    def renew(self, servers: Servers) -> set[str]:
        """Renew, then fail."""
        away = super().renew(servers)
        self.interval_s = 0
        if self._first:
            self._first = False
            return away
        self.renewed.set()
        if self._fails:
            raise SystemExit  # ends a thread without a traceback
        return away


class Overtaken(Servers):
    """Calls a function during its first request."""

    def __init__(self, node: ScriptedNode, meanwhile: Callable[[], object]) -> None:
        super().__init__([address_of(node)], ConnectionOptions())
        self._meanwhile = [meanwhile]

    def ask_holders(self, *words: Any) -> Any:
        answers = super().ask_holders(*words)
        if self._meanwhile:
            self._meanwhile.pop()()
        self.close()
        return answers
