"""Queues that are paused by policy."""

from __future__ import annotations

from disque_tx.core.queues.queues import IDLE_MS, PAUSE_ALL, PAUSE_IN, PAUSE_NONE, PAUSE_OUT
from disque_tx.messages.bustypes import REPLJOB
from tests.core.bench import ME, NodeCase
from tests.core.peerbench import B, PeerCase, peer_job
from tests.core.recordedevents import RecordedEvents

PAUSED = ("PAUSED", "Queue paused in input, try later")


class PauseTests(NodeCase):
    """Setting ``pause``."""

    def policy(self, pattern: bytes, pause: bytes) -> None:
        """Pause what matches the pattern."""
        self.node.policies.set(pattern, b"pause", pause)

    def flags(self, name: bytes = b"q") -> int:
        """The flags in force."""
        return int(self.node.queues.paused(name))

    def test_in(self) -> None:
        """A paused queue takes no jobs, whether it exists or not."""
        self.policy(b"q", b"in")
        self.assertEqual(PAUSED, self.refusal())
        self.node.queues.obtain(b"q", self.now_ms)
        self.assertEqual(PAUSED, self.refusal())

    def test_out(self) -> None:
        """Nothing is delivered until the policy changes; then clients that wait are served."""
        self.policy(b"q", b"out")
        job_id = self.add()
        client = self.wait(b"q")
        self.node.policies.unset(b"q", b"pause")
        self.node.serve()
        self.assertEqual([[[b"q", job_id, b"body"]]], self.replies(client))

    def test_pattern(self) -> None:
        """A pattern takes hold of queues that exist, and of those that come to be."""
        self.add(b"mail:a")
        self.policy(b"mail:*", b"out")
        self.pass_ms(1)
        self.add(b"mail:b")
        self.assertEqual([], self.get(b"mail:a", b"mail:b"))
        self.policy(b"mail:*", b"none")
        self.pass_ms(1)
        self.assertEqual(2, len(self.get(b"mail:a", b"mail:b", count=2)))

    def test_many_queues(self) -> None:
        """With very many queues a change takes several turns, reaches all, and then ends; changes
        that come meanwhile make it go round again."""
        names = [b"n%d" % number for number in range(2_000)]
        for name in names:
            self.node.queues.obtain(name, self.now_ms)
        self.policy(b"n*", b"out")
        self.pass_ms(1)
        self.assertIn(PAUSE_NONE, {self.flags(name) for name in names})
        self.policy(b"n*", b"all")
        for _ in range(30):
            self.pass_ms(1)
        self.assertEqual({PAUSE_ALL}, {self.flags(name) for name in names})
        self.assertFalse(self.node.state.slices.busy())

    def test_other_settings(self) -> None:
        """A change of other settings walks over no queue."""
        self.node.policies.set(b"*", b"ttl", b"5")
        self.assertFalse(self.node.state.slices.busy())

    def test_pause_command(self) -> None:
        """PAUSE adds to the policy, and PAUSE none takes away only what PAUSE said."""
        self.policy(b"q", b"in")
        self.node.pause(b"q", PAUSE_OUT)
        self.assertEqual(PAUSE_ALL, self.flags())
        self.node.pause(b"q", PAUSE_NONE)
        self.assertEqual(PAUSE_IN, self.flags())
        self.node.pause(b"q", PAUSE_OUT)
        self.policy(b"q", b"none")
        self.assertEqual(PAUSE_OUT, self.flags())

    def test_idle(self) -> None:
        """A queue that only a policy pauses is forgotten like others, and is paused when it comes
        back; one that PAUSE paused is not."""
        self.policy(b"*", b"in")
        for name in (b"a", b"b"):
            self.node.queues.obtain(name, self.now_ms)
        self.node.pause(b"b", PAUSE_OUT)
        self.node.queues.sweep(self.now_ms + IDLE_MS[0], 100)
        self.assertIsNone(self.node.queues.get(b"a"))
        self.assertEqual(PAUSE_IN, self.node.queues.obtain(b"a", self.now_ms).paused)
        self.assertIsNotNone(self.node.queues.get(b"b"))

    def test_event(self) -> None:
        """The event log has pauses by policy, once each."""
        self.node.queues.obtain(b"q", self.now_ms)
        recorded = self.node.outbox.events = RecordedEvents()
        for _ in range(2):
            self.policy(b"q", b"out")
        self.assertEqual([("paused", b"q", PAUSE_OUT)], recorded.take())

    def test_requeueing(self) -> None:
        """Jobs of a queue paused in input are not queued again after RETRY, even when the queue was
        forgotten meanwhile."""
        job_id = self.add(retry_s=400)
        self.get(b"q")
        self.policy(b"q", b"in")
        self.node.queues.sweep(self.now_ms + IDLE_MS[0], 100)
        self.pass_ms(401_000)
        self.assertEqual(0, self.length())
        self.policy(b"q", b"none")
        self.pass_ms(401_000)
        self.assertEqual([job_id], self.get(b"q"))


class CopiesTests(PeerCase):
    """Jobs of other nodes."""

    peers = (B,)

    def test_copies(self) -> None:
        """Copies for a queue paused in input are refused, as with PAUSE."""
        self.node.policies.set(b"*", b"pause", b"in")
        self.receive_jobs(B, REPLJOB, peer_job(1, (B, ME)))
        self.assertEqual(0, len(self.node.jobs))
