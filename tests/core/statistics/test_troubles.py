"""Queues whose jobs fail."""

from __future__ import annotations

from disque_tx.core.redelivery.retries import BY_POLICY
from disque_tx.core.statistics.troubles import TROUBLES_MAX
from tests.core.bench import NodeCase


class TroubleTests(NodeCase):
    """One node."""

    def fail_delivery(self, queue: bytes = b"q", reason: bytes = b"") -> bytes:
        """A delivery fails; returns the ID of the job."""
        self.add(queue, retry_s=300)
        (job_id,) = self.get(queue)
        self.node.enqueue([job_id], True, BY_POLICY, reason)
        return job_id

    def rows(self) -> list[tuple[bytes, int, int, bytes]]:
        """What is told."""
        found = self.node.state.troubles.recent(10)
        return [(one.data, int(one.failed), int(one.timed_out), one.error) for one in found]

    def test_failures(self) -> None:
        """The queue with most failures is told first, with its latest error."""
        self.fail_delivery(b"a", b"down")
        for reason in (b"first", b"second", b""):
            self.fail_delivery(b"b", reason)
        self.assertEqual([(b"b", 3, 0, b"second"), (b"a", 1, 0, b"down")], self.rows())

    def test_client(self) -> None:
        """The connection that gave a job back last is named, if it has a name."""
        self.fail_delivery()
        troubles = self.node.state.troubles
        for name in (b"first", b"second", b""):
            troubles.given_back(b"q", name)
        troubles.given_back(b"other", b"third")
        self.assertEqual([b"second"], [one.client for one in troubles.recent(10)])

    def test_over(self) -> None:
        """What failed more than a minute ago is of the past."""
        self.fail_delivery()
        self.pass_ms(40_000)
        self.fail_delivery()
        self.assertEqual(2, self.rows()[0][1])
        self.pass_ms(35_000)
        self.assertEqual(1, self.rows()[0][1])
        self.pass_ms(40_000)
        self.assertEqual([], self.rows())

    def test_halves(self) -> None:
        """Failures are forgotten half a minute at a time: those of the half minute before count,
        and none of an earlier one, whether something failed meanwhile or not."""
        self.add(retry_s=1)
        self.get(b"q")
        self.pass_ms(2_000)
        self.assertEqual([(b"q", 1, 1, b"")], self.rows())
        self.get(b"q")
        for ms, expected in ((29_999, (1, 1)), (1, (1, 1)), (29_999, (1, 1)), (1, (0, 0))):
            self.begin(self.now_ms + ms, self.wall_us)
            self.assertEqual([(b"q", *expected, b"")], self.rows(), ms)
        self.begin(self.now_ms + 1, self.wall_us)
        self.assertEqual([], self.rows())

    def test_skipped(self) -> None:
        """After a time in which nobody looked, and nothing failed, nothing is left of before."""
        self.add(retry_s=1)
        self.get(b"q")
        self.pass_ms(2_000)
        self.begin(self.now_ms + 60_000, self.wall_us)
        self.assertEqual([(b"q", 0, 0, b"")], self.rows())

    def test_most_often(self) -> None:
        """The job that failed most often is named, of several the last one, and a long reason is
        cut."""
        often = self.fail_delivery(b"q", b"x" * 300)
        self.get(b"q")
        self.node.enqueue([often], True, BY_POLICY, b"")
        once = self.fail_delivery(b"other")
        found = {one.data: one for one in self.node.state.troubles.recent(2)}
        self.assertEqual((2, often), (found[b"q"].attempts, found[b"q"].job_id))
        self.assertEqual(b"x" * 200, found[b"q"].error)
        self.assertEqual((1, once), (found[b"other"].attempts, found[b"other"].job_id))

    def test_both_ways(self) -> None:
        """Deliveries that were given back and those that were not acknowledged count alike."""
        job_id = self.add(retry_s=1)
        self.get(b"q")
        self.pass_ms(2_000)
        self.get(b"q")
        self.node.enqueue([job_id], True, BY_POLICY, b"")
        (found,) = self.node.state.troubles.recent(1)
        self.assertEqual((2, job_id), (found.attempts, found.job_id))

    def test_since(self) -> None:
        """Trouble begins with the first failure, and again after a minute without any."""
        self.fail_delivery()
        began_us = self.wall_us
        self.pass_ms(50_000)
        self.fail_delivery()
        self.assertEqual(began_us, self.node.state.troubles.recent(1)[0].since_us)
        self.pass_ms(61_000)
        self.fail_delivery()
        self.assertEqual(self.wall_us, self.node.state.troubles.recent(1)[0].since_us)

    def test_bounded(self) -> None:
        """Of however many queues 1,000 are remembered; those that failed long ago make room."""
        for number in range(TROUBLES_MAX + 5):
            self.fail_delivery(b"%d" % number)
        self.assertEqual(TROUBLES_MAX, len(self.node.state.troubles.recent(1 << 20)))
        self.pass_ms(61_000)
        self.fail_delivery(b"new")
        self.assertEqual([(b"new", 1, 0, b"")], self.rows())
