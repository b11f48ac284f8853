"""Acknowledgements to nodes that may be originals (cluster protocol, section 19)."""

from __future__ import annotations

from disque_tx.messages.bus import JobSignal
from disque_tx.messages.bustypes import REPLJOB, SETACK
from disque_tx.messages.nodes import NodeEntry
from tests.core.bench import ME
from tests.core.peerbench import B, C, PeerCase, peer_job


class NotHeardTests(PeerCase):
    """A node that was started again, and knows the others from its nodes file alone."""

    def setUp(self) -> None:
        super().setUp()
        for peer in (B, C):
            known = self.node.membership.nodes[peer]
            self.node.membership.remove(known)
            self.node.membership.add(NodeEntry(peer, known.ip, known.port, 0, self.now_ms))
            self.link(peer)
        self.node.membership.refresh()

    def holders_told(self, peer: bytes) -> list[int]:
        """How many holders a node was told of, in each SETACK."""
        sent = self.sent_to(peer)
        return [one.aux for one in sent if isinstance(one, JobSignal) and one.type == SETACK]

    def test_maker(self) -> None:
        """Until the node that made a job shows what it is, it is taken for an original, which would
        crash if it were told of other holders."""
        job = peer_job(1, (B, ME, C))
        self.receive_jobs(B, REPLJOB, job)
        self.node.acknowledge([job.id])
        self.assertEqual(([0], [3]), (self.holders_told(B), self.holders_told(C)))
