"""The audit finds planted violations, and nothing else."""

from __future__ import annotations

from disque_tx.spark.pipeline.lifecycle.audit import audit
from disque_tx.spark.pipeline.lifecycle.verdicts import UNKNOWN, VIOLATED, Audit
from tests.spark.pipeline.cases import PipelineCase
from tests.spark.pipeline.lifecycle.test_lifecycle import random_nodes
from tests.spark.pipeline.logs import BOOT, Node, job_id, node_id

_LATE_S = 4_000


class AuditTests(PipelineCase):
    """The jobs that are reported, and why."""

    def audit(self, *nodes: Node, limit: int = 100) -> Audit:
        """Audit the events of these nodes."""
        return audit(self.spark, self.ingested(*nodes), limit)

    def found(self, *nodes: Node) -> set[tuple[str, str, str]]:
        """Check, verdict and job of each suspect."""
        return {(s.check, s.verdict, s.job_id) for s in self.audit(*nodes).suspects}

    def test_nothing(self) -> None:
        """Hundreds of jobs with nacks, moves and expiry are no violations."""
        found = self.audit(*random_nodes(7, 300))
        self.assertEqual(
            (300, {}, [], False), (found.jobs, found.counts, found.suspects, found.violated)
        )

    def planted(self) -> tuple[Node, Node]:
        """Events with every violation once, and similar events that are none."""
        one, two = Node("a"), Node("b")
        one.add(0, job_id(1), ttl_s=600)
        one.add(0, job_id(2), ttl_s=600)
        one.log(600, "expired", job_id(2))
        one.log(0, "added", job_id(3), retry_s=60, ttl_s=86_400, delay_s=10, replicate=1)
        one.log(0, "added", job_id(4), retry_s=60, ttl_s=86_400, delay_s=9_000, replicate=1)
        for number in (10, 11):
            one.add(1, job_id(number), retry_s=0)
            one.work(2, job_id(number))
        one.log(3, "delivered", job_id(10), wait_ms=1)
        for number in (20, 21, 22):
            one.add(5, job_id(number))
            one.work(6, job_id(number))
        one.log(9, "delivered", job_id(20), wait_ms=1)
        two.log(30, "delivered", job_id(21), wait_ms=1)
        two.log(6.3, "delivered", job_id(22), wait_ms=1)
        more = {"retry_s": 60, "ttl_s": 86_400, "delay_s": 0, "replicate": 3}
        one.log(40, "added", job_id(30), **more)
        one.log(40, "queued", job_id(30))
        one.log(40, "added", job_id(31), **more, reason="async")
        one.log(40, "queued", job_id(31))
        one.log(40, "added", job_id(32), **more)
        one.log(41, "deleted", job_id(32), reason="not-replicated")
        one.log(40, "added", job_id(33), **more, reason="async")
        one.log(40, "queued", job_id(33))
        one.work(41, job_id(33))
        one.add(_LATE_S, job_id(40))
        return one, two

    def test_planted(self) -> None:
        """Each violation is found under its name."""
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
        """All violations are counted, even if only a few are listed."""
        found = self.audit(*self.planted(), limit=1)
        self.assertEqual(3, found.counts["delivered-after-ack", VIOLATED])
        self.assertEqual(4, len(found.suspects))

    def test_missing_events(self) -> None:
        """A violation that a missing event would explain is reported as unknown; a duplicate
        delivery is a violation in any case."""
        one = Node("a")
        one.add(0, job_id(1), ttl_s=600)
        one.add(1, job_id(2), retry_s=0)
        one.work(2, job_id(2))
        one.log(3, "delivered", job_id(2), wait_ms=1)
        one.log(40, "added", job_id(3), replicate=2, ttl_s=86_400)
        one.log(41, "queued", job_id(3))
        dropped = one.log(50, "expired", job_id(1))
        one.add(60, job_id(4), ttl_s=600)
        one.add(_LATE_S, job_id(5))
        one.events.remove(dropped)
        expected = {
            ("lost", UNKNOWN, job_id(1)),
            ("retry0-twice", VIOLATED, job_id(2)),
            ("delivered-after-ack", VIOLATED, job_id(2)),
            ("under-replicated", UNKNOWN, job_id(3)),
            # No event is missing after this job was added.
            ("lost", VIOLATED, job_id(4)),
        }
        self.assertEqual(expected, self.found(one))

    def test_missing_tail(self) -> None:
        """Events of the last second before a kill may be missing."""
        before, after = Node("a"), Node("a", BOOT + 100_000)
        before.add(0, job_id(1), ttl_s=600)
        after.add(100, job_id(2), ttl_s=600)
        after.add(_LATE_S, job_id(3))
        expected = {("lost", UNKNOWN, job_id(1)), ("lost", VIOLATED, job_id(2))}
        self.assertEqual(expected, self.found(before, after))

    def test_skewed(self) -> None:
        """A clock that is ahead, or that jumps, does not make deliveries suspicious."""
        one, two = Node("a"), Node("b", ahead_s=20)
        for number in range(3):
            job = job_id(number)
            one.add(number, job)
            one.log(number, "exported", job, peer=node_id("b"))
            two.log(number + 0.01, "imported", job, peer=node_id("a"))
            two.log(number + 0.02, "delivered", job, wait_ms=1)
            one.log(number + 0.03, "acked", job, reason="not-held")
        one.add(10, job_id(8))
        one.log(500, "delivered", job_id(8), wait_ms=1)
        one.log(30, "acked", job_id(8))
        self.assertEqual(set(), self.found(one, two))
