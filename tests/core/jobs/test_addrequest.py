"""ADDJOB on a queue with a policy: defaults of options, and limits of the queue."""

from __future__ import annotations

from disque_tx.errors import CommandError
from disque_tx.messages.records import ACTIVE
from tests.core.bench import NodeCase
from tests.core.peerbench import B, C, D, PeerCase
from tests.core.test_node import NEVER, ONCE

TOO_LONG = ("MAXLEN", "Queue is already longer than the specified MAXLEN count")


class DefaultsTests(NodeCase):
    """Settings ``ttl``, ``retry`` and ``delay``."""

    def policy(self, **settings: int) -> None:
        """Put settings in force for the queue ``q``."""
        for name, value in settings.items():
            self.node.policies.set(b"q", name.encode(), b"%d" % value)

    def test_all(self) -> None:
        """A producer need not repeat in each request what is the same for all jobs of a queue."""
        self.policy(ttl=100, retry=7, delay=5)
        job = self.job(self.add())
        self.assertEqual((100_000, 7, 5), (job.life_ms, job.retry_s, job.delay_s))
        self.assertEqual(ACTIVE, job.state)
        self.pass_ms(5_000)
        self.assertEqual([job.id], self.get(b"q"))

    def test_request_wins(self) -> None:
        """What a producer says about one job holds, zeros included."""
        self.policy(ttl=100, retry=7, delay=5)
        job = self.job(self.add(ttl_s=50, retry_s=0, delay_s=0, replicate=1))
        self.assertEqual((50_000, 0, 0), (job.life_ms, job.retry_s, job.delay_s))

    def test_other_queues(self) -> None:
        """A policy changes nothing for queues that it does not match."""
        self.policy(ttl=100, retry=7, delay=5)
        job = self.job(self.add(b"other"))
        self.assertEqual((86_400_000, 300, 0), (job.life_ms, job.retry_s, job.delay_s))

    def test_retry_follows_the_ttl(self) -> None:
        """Without a RETRY it is a tenth of the policy's TTL, as with a TTL that is given."""
        self.policy(ttl=100)
        self.assertEqual(10, self.job(self.add()).retry_s)

    def test_changed(self) -> None:
        """A change of the policy holds for the next job, its end, too."""
        self.policy(ttl=100)
        self.policy(ttl=200)
        self.assertEqual(200_000, self.job(self.add()).life_ms)
        self.node.policies.unset(b"q", b"ttl")
        self.assertEqual(86_400_000, self.job(self.add()).life_ms)

    def test_never_delivered(self) -> None:
        """A TTL that the policy's DELAY would outlast is refused, and the error says whose it
        is."""
        self.policy(delay=60)
        text = NEVER + " (policy of the queue: delay 60)"
        self.assertEqual(("ERR", text), self.refusal(ttl_s=60))
        self.assertEqual(("ERR", NEVER), self.refusal(ttl_s=60, delay_s=61))
        self.assertEqual(0, self.node.totals.added)


class ReplicateTests(PeerCase):
    """Setting ``replicate``."""

    peers = (B, C, D)

    def copies(self, replicate: int = -1) -> int:
        """The number of nodes to which a job is sent at once, this one included."""
        client = self.begin_add(replicate)
        (wait,) = self.node.waiters.copies.values()
        self.node.client_gone(client)
        return len(wait.job.nodes)

    def test_replicate(self) -> None:
        """Important queues have more copies without their producers knowing."""
        self.node.policies.set(b"q", b"replicate", b"4")
        self.assertEqual([4, 2], [self.copies(), self.copies(2)])

    def test_at_most_once(self) -> None:
        """RETRY 0 in the request and several copies by policy do not go together: doing without
        either would break what somebody was promised."""
        self.node.policies.set(b"q", b"replicate", b"3")
        text = ONCE + " (policy of the queue: replicate 3)"
        self.assertEqual(("ERR", text), self.refusal(retry_s=0))

    def test_at_most_once_by_policy(self) -> None:
        """A queue whose jobs are delivered once at most says so with two settings."""
        self.node.policies.set(b"q", b"retry", b"0")
        text = ONCE + " (policy of the queue: retry 0)"
        self.assertEqual(("ERR", text), self.refusal())
        self.node.policies.set(b"q", b"replicate", b"1")
        job = self.job(self.add())
        self.assertEqual((0, 1), (job.retry_s, job.repl))

    def test_unreachable(self) -> None:
        """More copies than there are nodes are refused, whoever asked for them."""
        self.node.policies.set(b"q", b"replicate", b"5")
        error = self.assertRaises(CommandError, self.begin_add, -1)
        self.assertEqual("NOREPL", error.code)


class RejectTests(NodeCase):
    """``max-length`` with ``overflow reject``, its default."""

    def test_reject(self) -> None:
        """A full queue refuses jobs as with MAXLEN, and takes them again when there is room."""
        self.node.policies.set(b"*", b"max-length", b"2")
        self.add()
        self.add()
        self.assertEqual(TOO_LONG, self.refusal())
        self.get(b"q")
        self.add()

    def test_both_limits(self) -> None:
        """The smaller of MAXLEN and the policy's limit counts."""
        self.node.policies.set(b"q", b"max-length", b"2")
        self.add()
        self.assertEqual(TOO_LONG, self.refusal(maxlen=1))
        self.add(maxlen=9)
        self.assertEqual(TOO_LONG, self.refusal(maxlen=9))

    def test_no_limit(self) -> None:
        """0 is no limit, which lets one queue out of a wider policy."""
        self.node.policies.set(b"*", b"max-length", b"1")
        self.node.policies.set(b"q", b"max-length", b"0")
        for _ in range(3):
            self.add()
        self.assertEqual(3, self.length())
