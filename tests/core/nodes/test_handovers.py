"""Which nodes got which jobs lately."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.core.nodes.handovers import GIVEN_MS, RecentHandovers
from disque_tx.core.nodes.membership import Membership
from disque_tx.core.nodes.peers import Peers
from disque_tx.messages.bus import JobSignal
from disque_tx.messages.nodes import MYSELF, Link, NodeEntry
from tests.core.bench import ME
from tests.core.peerbench import B, C, SentMessages

JOB = b"D-aaaaaaaa-000000000000000000000001-05a1"
OTHER = b"D-aaaaaaaa-000000000000000000000002-05a1"


class HandoverTests(SynchronousTestCase):
    """A node that gives jobs to two others."""

    def setUp(self) -> None:
        membership = Membership(NodeEntry(ME, b"10.0.0.1", 7711, MYSELF, 0), lambda: b"z" * 40)
        self.sinks: dict[bytes, SentMessages] = {}
        for node in (B, C):
            entry = NodeEntry(node, b"10.0.0.2", 7711, 0, 0)
            self.sinks[node] = SentMessages()
            entry.link = Link(self.sinks[node], entry, entry.ip, b"10.0.0.1", 0, 1)
            membership.add(entry)
        self.handovers = RecentHandovers(Peers(membership))

    def told(self, node: bytes) -> list[bytes]:
        """The jobs of which a node was told that they are done."""
        return [one.job_id for one in self.sinks[node].messages if isinstance(one, JobSignal)]

    def test_done(self) -> None:
        """Who got a job learns that it is done, but not who says so, and once."""
        self.handovers.note(JOB, B, 0)
        self.handovers.note(JOB, C, 0)
        self.handovers.note(OTHER, C, 0)
        self.handovers.done(JOB, 1, by=C)
        self.handovers.done(JOB, 2)
        self.assertEqual(([JOB], []), (self.told(B), self.told(C)))

    def test_remembered(self) -> None:
        """A job is remembered for as long as it may be on its way, however many follow, and for no
        more than twice as long."""
        self.handovers.note(JOB, B, 0)
        self.handovers.note(OTHER, C, GIVEN_MS + 1)
        self.handovers.done(JOB, GIVEN_MS + 2)
        self.assertEqual([JOB], self.told(B))
        self.handovers.note(JOB, B, 3 * GIVEN_MS)
        self.handovers.note(b"D-1", C, 5 * GIVEN_MS)
        self.handovers.note(b"D-2", C, 7 * GIVEN_MS)
        self.handovers.done(JOB, 7 * GIVEN_MS)
        self.assertEqual([JOB], self.told(B))
