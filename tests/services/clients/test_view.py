"""What plugins read of a node."""

from __future__ import annotations

import math

import attrs
from zope.interface.verify import verifyObject

from disque_tx.messages.nodes import FAIL, HANDSHAKE, LEAVING, PFAIL, Link, NodeEntry
from disque_tx.plugins.interfaces import INodeView
from disque_tx.plugins.values import Durations, Health
from disque_tx.services.clients.view import NodeView
from disque_tx.services.events.sinks import EventSinks
from tests.core.peerbench import SentMessages
from tests.services.nodebench import FIRST_ID, NodeCase


class ViewTests(NodeCase):
    """The state of a node."""

    def setUp(self) -> None:
        super().setUp()
        self.started = True
        self.view = NodeView(self.server, EventSinks(self.node), lambda: self.started)

    def test_health(self) -> None:
        """A load balancer learns from it whether to send clients here."""
        verifyObject(INodeView, self.view)
        self.assertEqual(Health(True, False, False, False, ""), self.view.health())
        self.started = False
        self.assertFalse(self.view.health().started)

    def test_info(self) -> None:
        """Fields are those of INFO."""
        self.turn(b"ADDJOB q b 0")
        self.assertEqual("1", self.view.info()["registered_jobs"])
        self.assertIn("addjob", [name for name, _calls, _us in self.view.commands()])

    def test_states(self) -> None:
        """Each other node counts once: by what is worst about it, or else by whether there is a
        connection to it."""
        flags = (FAIL | PFAIL, FAIL, PFAIL, PFAIL | HANDSHAKE, HANDSHAKE, LEAVING, 0)
        for number, each in enumerate(flags):
            node_id = b"%040x" % number
            self.node.membership.add(NodeEntry(node_id, b"10.0.0.2", 7711 + number, each, 0))
        expected = {"failed": 2, "suspected": 2, "handshake": 1, "connected": 0, "unconnected": 2}
        self.assertEqual(expected, self.view.nodes())

    def test_protocols(self) -> None:
        """The figures of the main protocol are those of INFO."""
        self.turn(b"PING", b"NONSENSE")
        (resp,) = self.view.protocols()
        self.assertEqual(("resp", 1, 1, 1, 1), attrs.astuple(resp)[:5])
        self.assertEqual((16, 40), attrs.astuple(resp)[5:])

    def test_jobs(self) -> None:
        """Jobs of a queue can be looked at one by one, and no more of a body than is wanted."""
        for body in (b"first", b"second", b"third"):
            self.turn(b"ADDJOB q %s 0" % body)
        ids = self.view.queued(b"q", 2)
        bodies = [self.view.body(job_id, 3) for job_id in ids]
        self.assertEqual([(b"fir", 5), (b"sec", 6)], bodies)
        (newest,) = self.view.queued(b"q", -1)
        self.assertEqual((b"third", 5), self.view.body(newest, 100))
        self.assertEqual(3, len(self.view.queued(b"q", 100)))
        self.assertEqual([], self.view.queued(b"q", 0))
        self.assertEqual([], self.view.queued(b"none", 5))
        self.assertIsNone(self.view.body(b"D-" + bytes(38), 5))

    def test_schedules(self) -> None:
        """The names of schedules come in order."""
        for name in (b"b", b"a"):
            self.turn(b"SCHEDULE SET %s EVERY 60 QUEUE q x" % name)
        self.assertEqual([b"a", b"b"], self.view.schedules())

    def test_policies(self) -> None:
        """The patterns of policies come in order."""
        for pattern in (b"b*", b"a*"):
            self.turn(b"QPOLICY SET %s ttl 60" % pattern)
        self.assertEqual([b"a*", b"b*"], self.view.policies())

    def test_queues(self) -> None:
        """Every queue is found once, in slices, with its figures."""
        for number in range(50):
            self.turn(b"ADDJOB q%d b 0" % number)
        self.reactor.advance(2)
        with self.runtime.turn():
            pass
        cursor, found, calls = 0, [], 0
        while True:
            cursor, some = self.view.queues(cursor, 10)
            found += some
            calls += 1
            if cursor == 0:
                break
        self.assertGreater(calls, 1)
        self.assertEqual({b"q%d" % number for number in range(50)}, {q.name for q in found})
        queue = self.view.queue(b"q7")
        assert queue is not None
        self.assertEqual(
            (1, 2.0, "none", 1), (queue.queued, queue.oldest_s, queue.pause, queue.jobs_in)
        )
        self.assertIsNone(self.view.queue(b"nothing"))

    def test_counts(self) -> None:
        """A console shows jobs that are not in the queue, too, of queues that do not exist any
        more as well."""
        self.turn(b"ADDJOB q a 0", b"ADDJOB q b 0", b"ADDJOB other c 0")
        worker, _transport = self.connect()
        worker.dataReceived(b"GETJOB COUNT 2 FROM q\r\nGETJOB FROM other\r\n")
        self.turn(b"ADDJOB q d 0 DELAY 60", b"ADDJOB dead:q e 0")
        counts = self.view.counts(b"q")
        self.assertEqual((1, 0, 2, 1), attrs.astuple(counts)[:4])
        self.assertEqual((0, 0, 0, 0, 0.0, 0.0, 0), attrs.astuple(self.view.counts(b"nothing")))

    def test_durations(self) -> None:
        """Waits and work are counted by their length from the first question on, and cost nothing
        before."""
        self.turn(b"ADDJOB q before 0", b"GETJOB FROM q", b"ACKJOB " + FIRST_ID)
        self.assertIsNone(self.node.outbox.events)
        wait, run = self.view.durations()
        self.assertEqual(((), ()), (_counted(wait), _counted(run)))
        added = self.turn(b"ADDJOB q b 0 DELAY 60", b"ADDJOB q b 0").split(b"\r\n")[1][1:]
        self.reactor.advance(0.2)
        self.turn(b"GETJOB FROM q")
        self.reactor.advance(30)
        self.turn(b"ACKJOB " + added)
        wait, run = self.view.durations()
        self.assertEqual(((0.25,), (30.0,)), (_counted(wait), _counted(run)))
        self.assertEqual((0.2, 30.0), (wait.sum_s, run.sum_s))
        self.assertEqual(len(wait.bounds_s) + 1, len(wait.counts))

    def test_connected(self) -> None:
        """One sees at once to which nodes there is a connection, without asking anybody."""
        node_id = b"%040x" % 7
        entry = NodeEntry(node_id, b"10.0.0.7", 7711, 0, self.node.now_ms)
        self.node.membership.add(entry)
        self.assertEqual(frozenset(), self.view.connected())
        entry.link = Link(SentMessages(), entry, entry.ip, b"10.0.0.1", self.node.now_ms, 1)
        self.assertEqual(frozenset([node_id.decode()]), self.view.connected())

    def test_failure_reports(self) -> None:
        """One sees which node does not reach which other, as long as that was reported lately."""
        node_id = b"%040x" % 7
        entry = NodeEntry(node_id, b"10.0.0.7", 7711, 0, self.node.now_ms)
        self.node.membership.add(entry)
        self.assertEqual({}, self.view.failure_reports())
        entry.reports[b"%040x" % 8] = self.node.now_ms
        expected = {node_id.decode(): [f"{8:040x}"]}
        self.assertEqual(expected, self.view.failure_reports())
        self.reactor.advance(60)
        self.turn(b"PING")
        self.assertEqual({}, self.view.failure_reports())


def _counted(durations: Durations) -> tuple[float, ...]:
    """The upper bound of every duration that was counted."""
    pairs = zip((*durations.bounds_s, math.inf), durations.counts, strict=True)
    return tuple(bound_s for bound_s, count in pairs for _ in range(count))
