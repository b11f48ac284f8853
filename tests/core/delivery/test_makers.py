"""Acknowledgements of jobs whose makers keep no copy of them."""

from __future__ import annotations

from disque_tx.messages.bustypes import GOTACK, REPLJOB, SETACK
from disque_tx.messages.nodes import HANDSHAKE
from tests.core.bench import ME
from tests.core.delivery.test_acks import AckCase
from tests.core.peerbench import B, C, D, peer_job


class MakerTests(AckCase):
    """B, C and D are known, in this order; this node and another one hold a job of a third one."""

    def setUp(self) -> None:
        super().setUp()
        self.join(D)

    def acknowledged(self, maker: bytes, holder: bytes, repl: int = 2) -> bytes:
        """The ID of a job that is acknowledged here."""
        job = peer_job(1, (ME, holder))
        job.id = b"D-%s-%024d-003d" % (maker[:8], 1)
        job.repl = repl
        self.receive_jobs(holder, REPLJOB, job)
        self.clear_sent()
        self.node.acknowledge([job.id])
        return job.id

    def asked(self) -> list[bytes]:
        """The nodes that are notified."""
        signals = {peer: self.signals(peer) for peer in (B, C, D)}
        found = [peer for peer in signals if signals[peer]]
        self.assertEqual([[(SETACK, 2)]] * len(found), [signals[peer] for peer in found])
        return found

    def test_asked(self) -> None:
        """The maker is notified like the other holder, whichever member it is, and nobody else;
        when both have confirmed, the job is forgotten here."""
        for maker, holder in ((B, C), (C, D), (D, B)):
            self.setUp()
            job_id = self.acknowledged(maker, holder)
            self.assertEqual({maker, holder}, set(self.asked()))
            self.receive_signal(holder, GOTACK, job_id, 1)
            self.assertIsNotNone(self.node.jobs.get(job_id))
            self.receive_signal(maker, GOTACK, job_id, 0)
            self.assert_nothing_left()

    def test_not_asked(self) -> None:
        """Only the holder is notified of a job that was to have one copy, and if the maker is this
        node, is no member, or not one yet."""
        for maker, repl, flags in ((D, 1, 0), (ME, 2, 0), (b"f" * 40, 2, 0), (D, 2, HANDSHAKE)):
            self.setUp()
            self.node.membership.nodes[D].flags |= flags
            job_id = self.acknowledged(maker, B, repl)
            self.assertEqual([B], self.asked())
            self.receive_signal(B, GOTACK, job_id, 1)
            self.assert_nothing_left()
