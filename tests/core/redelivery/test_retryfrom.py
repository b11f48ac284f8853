"""``retry-from delivery``: a consumer has all of RETRY, however long the job waited."""

from __future__ import annotations

from tests.core.bench import NodeCase
from tests.core.peerbench import B, PeerCase


class DeliveryTests(NodeCase):
    """One node."""

    def setUp(self) -> None:
        super().setUp()
        self.node.policies.set(b"q", b"retry-from", b"delivery")

    def test_clock_restarts(self) -> None:
        """A job that waited for almost its RETRY is not delivered twice at once."""
        job_id = self.add(retry_s=10)
        self.pass_ms(9_000)
        self.assertEqual([job_id], self.get(b"q"))
        self.pass_ms(9_000)
        self.assertEqual([], self.get(b"q"))
        self.pass_ms(1_100)
        self.assertEqual([job_id], self.get(b"q"))

    def test_blocked_client(self) -> None:
        """It holds as well for a client that waited."""
        self.wait(b"q")
        job_id = self.add(retry_s=10)
        self.assertEqual(self.now_ms + 10_000, self.job(job_id).qtime_ms)

    def test_at_most_once(self) -> None:
        """A job with RETRY 0 has no clock that could start."""
        job_id = self.add(retry_s=0, replicate=1)
        self.get(b"q")
        self.assertEqual(0, self.job(job_id).qtime_ms)

    def test_queueing(self) -> None:
        """Without the setting RETRY runs from queueing, as with the original."""
        self.node.policies.set(b"q", b"retry-from", b"queueing")
        job_id = self.add(retry_s=10)
        self.pass_ms(9_000)
        self.get(b"q")
        self.pass_ms(1_100)
        self.assertEqual([job_id], self.get(b"q"))


class HoldersTests(PeerCase):
    """Jobs with copies."""

    peers = (B,)

    def test_holders_wait(self) -> None:
        """Other holders get WORKING, which originals obey: they would queue the job otherwise."""
        self.node.policies.set(b"q", b"retry-from", b"delivery")
        self.arrange(retry_s=10)
        self.get(b"q")
        self.assertEqual(["WORKING"], self.sent_names(B))

    def test_no_policy(self) -> None:
        """Without a policy a delivery sends nothing."""
        self.arrange(retry_s=10)
        self.get(b"q")
        self.assertEqual([], self.sent_names(B))

    def arrange(self, retry_s: int) -> None:
        """A job with a copy at the peer is queued here."""
        self.begin_add(2, asynchronous=True, retry_s=retry_s)
        self.sent_names(B)
