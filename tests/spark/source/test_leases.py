"""The jobs whose leases are renewed, and the interval."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from disque_tx.client import BrokenReply
from disque_tx.client.blocking.servers import Servers
from disque_tx.client.options import ConnectionOptions
from disque_tx.spark.source.leases import Heartbeat, SourceLeases
from tests.client.scripted import FakeTime, ScriptedNode
from tests.spark.nodes import GONE, IDS, NodesTestCase, address_of

_LATE = b"-TOOLATE Half of job TTL already elapsed\r\n"


class LeasesTests(NodesTestCase):
    """WORKING requests to scripted nodes."""

    def renewed(self, node: ScriptedNode) -> list[bytes]:
        """The jobs in the requests to the node; clears the requests."""
        ids = [words[1] for words in node.requests]
        node.requests.clear()
        return ids

    def setUp(self) -> None:
        super().setUp()
        self.time = FakeTime()

    def leases(self) -> SourceLeases:
        """Leases by the clock of the test."""
        return SourceLeases(self.time.now_s)

    def test_shortest_retry(self) -> None:
        """Leases are renewed before the shortest RETRY of the batch is over; jobs with RETRY 0 need
        no renewal."""
        node = self.node(WORKING=[b":60\r\n", b":6\r\n", b":0\r\n", b":60\r\n"])
        servers = self.servers(node)
        leases = self.leases()
        leases.replace({address_of(node): IDS[:3]}, servers)
        self.assertEqual(4.0, leases.wait_s())
        self.time.s += 1.5
        self.assertEqual(2.5, leases.wait_s())
        self.renewed(node)
        leases.renew(servers)
        self.assertEqual([job_id.encode() for job_id in IDS[:2]], self.renewed(node))

    def test_nothing_to_renew(self) -> None:
        """Without jobs, or only with RETRY 0, there are no renewals."""
        node = self.node(WORKING=b":0\r\n")
        leases = self.leases()
        leases.replace({address_of(node): IDS[:2]}, self.servers(node))
        self.assertIsNone(leases.wait_s())
        leases.replace({}, self.servers(node))
        self.assertIsNone(leases.wait_s())

    def test_refused(self) -> None:
        """Jobs that are old, done or unknown are not renewed again; that they are old is logged
        once."""
        node = self.node(WORKING=[_LATE, GONE, b"-ACKED done\r\n", b":60\r\n", _LATE])
        servers = self.servers(node)
        leases = self.leases()
        with self.assertLogs("disque_tx.spark.source.leases", "WARNING") as logged:
            leases.replace({address_of(node): IDS[:4]}, servers)
            self.renewed(node)
            leases.renew(servers)
        self.assertEqual([IDS[3].encode()], self.renewed(node))
        self.assertEqual(1, len(logged.output))
        self.assertIn("half of the TTL", logged.output[0])

    def test_node_down(self) -> None:
        """While a node is down, its jobs are tried again soon, and from then on as before."""
        node = self.node(WORKING=b":60\r\n")
        servers = self.servers(node)
        leases = self.leases()
        leases.replace({address_of(node): IDS[:1]}, servers)
        node.answer("WORKING", b"<hang up>")
        leases.renew(servers)
        self.assertEqual(6.0, leases.wait_s())
        node.answer("WORKING", b":6\r\n")
        leases.renew(servers)
        self.assertEqual(4.0, leases.wait_s())

    def test_one_of_two_nodes_down(self) -> None:
        """The heartbeats of a node that is down are not put off by the answers of another one."""
        one, two = self.node(WORKING=b":60\r\n"), self.node(WORKING=b"<hang up>")
        leases = self.leases()
        jobs = {address_of(one): IDS[:1], address_of(two): IDS[1:2]}
        one.answer("WORKING", b":60\r\n", GONE)
        self.assertEqual({IDS[1]}, leases.replace(jobs, self.servers(one, two)))
        self.assertEqual(6.0, leases.wait_s())

    def test_error(self) -> None:
        """After a round that failed, the next one is not made at once, again and again."""
        node = self.node(WORKING=b"+what\r\n")
        leases = self.leases()
        servers = self.servers(node)
        self.assertRaises(BrokenReply, leases.replace, {address_of(node): IDS[:1]}, servers)
        self.assertAlmostEqual(0.2, leases.wait_s() or 0.0)

    def test_next_batch_during_renewal(self) -> None:
        """When the next batch begins during a renewal, which runs in another thread, the jobs of
        the last one are not renewed again."""
        node = self.node(WORKING=b":60\r\n")
        leases = self.leases()
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
        self.assertIsNone(leases.wait_s())


class HeartbeatTests(NodesTestCase):
    """The thread that renews."""

    def test_connections(self) -> None:
        """At the end of a query the connections of the thread are closed, also when the thread ends
        by an error."""
        node = self.node(WORKING=b":60\r\n")
        for fails in (False, True):
            leases, servers = Failing(fails), self.servers(node)
            leases.replace({address_of(node): IDS[:1]}, servers)
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

    def wait_s(self) -> float:
        """No time at all."""
        return 0.0

    def renew(self, servers: Servers) -> set[str]:
        """Renew, then fail."""
        away = super().renew(servers)
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

    def postpone(self, *words: Any) -> Any:
        answers = super().postpone(*words)
        if self._meanwhile:
            self._meanwhile.pop()()
        self.close()
        return answers
