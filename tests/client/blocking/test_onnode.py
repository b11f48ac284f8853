"""A blocking client on a node: which jobs it gets, and what it says of them."""

from __future__ import annotations

from tests.cli.livenode import VerbCase


class FetchTests(VerbCase):
    """Jobs of queues that patterns choose."""

    def test_patterns(self) -> None:
        """Queues are named, or chosen by a pattern, without those of another one."""
        for queue in ("a1", "a2", "b1"):
            self.add(queue, queue)
        found = self.client.take(match="a*", except_="a1", no_hang=True, count=9)
        self.assertEqual([b"a2"], [job.data for job in found])
        found = self.client.take("b1", match=["a*"], except_=["a2"], no_hang=True, count=9)
        self.assertEqual([b"a1", b"b1"], sorted(job.data for job in found))
        self.add("a2", "x")
        jobs = self.client.get_jobs(match="a?", except_=("b*",), no_hang=True)
        self.assertEqual([("a2", b"x")], [(job.queue, job.body) for job in jobs])
        self.assertEqual([], self.client.take("a1", "a2", "b1", no_hang=True))

    def test_count(self) -> None:
        """No more jobs are fetched than wanted, one by default, and a time without any is over
        soon."""
        self.add("q", *"abcd")
        self.assertEqual(1, len(self.client.take("q", no_hang=True)))
        self.assertEqual(2, len(self.client.take("q", count=2, no_hang=True)))
        self.assertEqual(1, len(self.client.take("q", count=9, timeout_s=5)))
        self.assertEqual([], self.client.take("q", timeout_s=0.01))
        self.assertIsNone(self.client.dequeue("q", 0))
        self.add("q", "e")
        job = self.client.dequeue("q")
        assert job is not None
        self.assertEqual(b"e", job.data)
        job.ack()
        self.assertEqual(4, int(self.client.info()["registered_jobs"]))

    def test_order(self) -> None:
        """The first queue is emptied first."""
        for queue in ("b", "a"):
            self.add(queue, f"{queue}1", f"{queue}2")
        found = self.client.take_in_order("a", "b", count=3, timeout_s=1)
        self.assertEqual([b"a1", b"a2", b"b1"], [job.data for job in found])
