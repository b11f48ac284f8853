"""What should not have happened: planted faults are found, and nothing else."""

from __future__ import annotations

from disque_tx.spark.pipeline.lifecycle.audit import UNKNOWN, VIOLATED, Audit, audit
from tests.spark.pipeline.cases import PipelineCase
from tests.spark.pipeline.lifecycle.test_lifecycle import random_nodes
from tests.spark.pipeline.logs import BOOT, Node, job_id, node_id

_LATE_S = 4_000


class AuditTests(PipelineCase):
    """Jobs that are named, and why."""

    def audit(self, *nodes: Node, limit: int = 100) -> Audit:
        """Of what these nodes tell."""
        return audit(self.spark, self.ingested(*nodes), limit)

    def found(self, *nodes: Node) -> set[tuple[str, str, str]]:
        """Check, verdict and job of each."""
        return {(s.check, s.verdict, s.job_id) for s in self.audit(*nodes).suspects}

    def test_nothing(self) -> None:
        """Hundreds of jobs that nacks, moves and expiry befell are all right."""
        found = self.audit(*random_nodes(7, 300))
        self.assertEqual(
            (300, {}, [], False), (found.jobs, found.counts, found.suspects, found.violated)
        )

    def planted(self) -> tuple[Node, Node]:
        """Every fault once, and beside each what looks like it and is none."""
        one, two = Node("a"), Node("b")
        one.add(0, job_id(1), ttl_s=600)
        one.add(0, job_id(2), ttl_s=600)
        one.tell(600, "expired", job_id(2))
        one.tell(0, "added", job_id(3), retry_s=60, ttl_s=86_400, delay_s=10, replicate=1)
        one.tell(0, "added", job_id(4), retry_s=60, ttl_s=86_400, delay_s=9_000, replicate=1)
        for number in (10, 11):
            one.add(1, job_id(number), retry_s=0)
            one.work(2, job_id(number))
        one.tell(3, "delivered", job_id(10), wait_ms=1)
        for number in (20, 21, 22):
            one.add(5, job_id(number))
            one.work(6, job_id(number))
        one.tell(9, "delivered", job_id(20), wait_ms=1)
        two.tell(30, "delivered", job_id(21), wait_ms=1)
        two.tell(6.3, "delivered", job_id(22), wait_ms=1)
        more = {"retry_s": 60, "ttl_s": 86_400, "delay_s": 0, "replicate": 3}
        one.tell(40, "added", job_id(30), **more)
        one.tell(40, "queued", job_id(30))
        one.tell(40, "added", job_id(31), **more, reason="async")
        one.tell(40, "queued", job_id(31))
        one.tell(40, "added", job_id(32), **more)
        one.tell(41, "deleted", job_id(32), reason="not-replicated")
        one.tell(40, "added", job_id(33), **more, reason="async")
        one.tell(40, "queued", job_id(33))
        one.work(41, job_id(33))
        one.add(_LATE_S, job_id(40))
        return one, two

    def test_planted(self) -> None:
        """Each fault is found under its name."""
        faults = {
            "lost": (1, 3),
            "retry0-twice": (10,),
            "delivered-after-ack": (10, 20, 21),
            "under-replicated": (30, 31),
        }
        expected = {
            (check, VIOLATED, job_id(number)) for check, jobs in faults.items() for number in jobs
        }
        found = self.audit(*self.planted())
        self.assertEqual(expected, {(s.check, s.verdict, s.job_id) for s in found.suspects})
        self.assertTrue(found.violated)

    def test_limit(self) -> None:
        """All are counted, however few are named."""
        found = audit(self.spark, self.ingested(*self.planted()), limit=1)
        self.assertEqual(3, found.counts["delivered-after-ack", VIOLATED])
        self.assertEqual(4, len(found.suspects))

    def test_missing_events(self) -> None:
        """What a missing event would explain is not held against anybody; what was seen twice is
        wrong all the same."""
        one = Node("a")
        one.add(0, job_id(1), ttl_s=600)
        one.add(1, job_id(2), retry_s=0)
        one.work(2, job_id(2))
        one.tell(3, "delivered", job_id(2), wait_ms=1)
        one.tell(40, "added", job_id(3), replicate=2, ttl_s=86_400)
        one.tell(41, "queued", job_id(3))
        dropped = one.tell(50, "expired", job_id(1))
        one.add(60, job_id(4), ttl_s=600)
        one.add(_LATE_S, job_id(5))
        one.events.remove(dropped)
        expected = {
            ("lost", UNKNOWN, job_id(1)),
            ("retry0-twice", VIOLATED, job_id(2)),
            ("delivered-after-ack", VIOLATED, job_id(2)),
            ("under-replicated", UNKNOWN, job_id(3)),
            # Nothing is missing after it was added.
            ("lost", VIOLATED, job_id(4)),
        }
        self.assertEqual(expected, self.found(one))

    def test_missing_tail(self) -> None:
        """What a node told in the second before it was killed may be gone."""
        before, after = Node("a"), Node("a", BOOT + 100_000)
        before.add(0, job_id(1), ttl_s=600)
        after.add(100, job_id(2), ttl_s=600)
        after.add(_LATE_S, job_id(3))
        expected = {("lost", UNKNOWN, job_id(1)), ("lost", VIOLATED, job_id(2))}
        self.assertEqual(expected, self.found(before, after))

    def test_skewed(self) -> None:
        """A clock that is ahead does not make deliveries late, nor does one that jumps."""
        one, two = Node("a"), Node("b", ahead_s=20)
        for number in range(3):
            job = job_id(number)
            one.add(number, job)
            one.tell(number, "exported", job, peer=node_id("b"))
            two.tell(number + 0.01, "imported", job, peer=node_id("a"))
            two.tell(number + 0.02, "delivered", job, wait_ms=1)
            one.tell(number + 0.03, "acked", job, reason="not-held")
        one.add(10, job_id(8))
        one.tell(500, "delivered", job_id(8), wait_ms=1)
        one.tell(30, "acked", job_id(8))
        self.assertEqual(set(), self.found(one, two))
