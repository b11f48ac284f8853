"""Jobs per second, in and out of a queue."""

from __future__ import annotations

from tests.core.bench import NodeCase


class RateTests(NodeCase):
    """The mean of ten seconds."""

    def rates(self) -> tuple[int, int]:
        """Jobs in and out per 1,000 seconds."""
        queue = self.node.queues.get(b"q")
        assert queue is not None
        in_milli, out_milli = queue.milli_per_s(self.now_ms)
        return int(in_milli), int(out_milli)

    def test_steady(self) -> None:
        """One job a second is a rate of one, at any moment once ten seconds have passed."""
        for _ in range(40):
            self.add(ttl_s=3_600)
            self.pass_ms(1_000)
            if self.now_ms > 62_000:
                self.assertEqual((1_000, 0), self.rates())

    def test_from_the_start(self) -> None:
        """A burst counts at once: it is spread over ten seconds, for the time before it was
        quiet."""
        for _ in range(20):
            self.add()
        self.get(b"q", count=5)
        self.assertEqual((2_000, 500), self.rates())

    def test_fades(self) -> None:
        """What was longer ago than ten seconds counts no more, whether anybody looked meanwhile or
        not."""
        for _ in range(20):
            self.add()
        self.pass_ms(4_999)
        self.assertEqual(2_000, self.rates()[0])
        self.pass_ms(7_501)
        self.assertEqual(1_000, self.rates()[0])
        self.pass_ms(2_500)
        self.assertEqual(0, self.rates()[0])
        self.add()
        self.pass_ms(1_000_000)
        self.assertEqual((0, 0), self.rates())
