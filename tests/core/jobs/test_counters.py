"""When it is recorded how often a job came back."""

from __future__ import annotations

from tests.core.bench import UNIX_S, NodeCase


class CountersTests(NodeCase):
    """One node, whose records are seen."""

    def setUp(self) -> None:
        super().setUp()
        self.counters = self.node.state.counters
        self.counted: list[tuple[bytes, int, int]] = []
        self.patch(self.log, "count_job", lambda *words: self.counted.append(words))

    def set(self, name: bytes, value: bytes) -> None:
        """All queues have this setting."""
        table = self.node.policy_table
        table.apply(table.plan_set(b"*", [(name, value)], self.node.id), UNIX_S)

    def returned(self, queue: bytes = b"q") -> bytes:
        """A job that a client has given back."""
        job_id = self.add(queue)
        self.get(queue)
        self.node.enqueue([job_id], True)
        return job_id

    def test_late(self) -> None:
        """A change is recorded a second after it was first looked for, once, with what else has
        changed until then."""
        self.set(b"max-deliveries", b"9")
        first = self.returned()
        self.counters.record_late(5_000)
        self.counters.record_late(5_999)
        second = self.returned(b"r")
        self.assertEqual([], self.counted)
        self.counters.record_late(6_000)
        self.assertEqual([(first, 1, 0), (second, 1, 0)], sorted(self.counted))
        self.counted.clear()
        self.counters.record_late(9_000)
        self.counters.record()
        self.assertEqual([], self.counted)
        third = self.returned(b"s")
        self.counters.record_late(20_000)
        self.assertEqual([], self.counted)
        self.counters.record_late(21_000)
        self.assertEqual([third], [job_id for job_id, _, _ in self.counted])

    def test_with_others(self) -> None:
        """What is recorded meanwhile takes the changes along, and their second is over then."""
        self.set(b"max-deliveries", b"9")
        self.returned()
        self.counters.record_late(5_000)
        self.counters.record()
        self.assertEqual(1, len(self.counted))
        self.returned()
        self.counters.record_late(6_000)
        self.assertEqual(1, len(self.counted))

    def test_policies(self) -> None:
        """Only where a policy makes something of it: each of the two settings alone is enough, and
        without a log nothing is kept."""
        self.returned()
        self.counters.record()
        self.assertEqual([], self.counted)
        for setting, value in ((b"max-deliveries", b"1"), (b"retry-delay", b"1")):
            self.setUp()
            self.set(setting, value)
            job_id = self.add()
            self.counters.changed(self.job(job_id))
            self.counters.record()
            self.assertEqual([job_id], [found for found, _, _ in self.counted], setting)
        self.counted.clear()
        self.node.outbox.log = None
        self.counters.changed(self.job(job_id))
        self.node.outbox.log = self.log
        self.counters.record()
        self.assertEqual([], self.counted)

    def test_gone(self) -> None:
        """Of a job that is gone, or done, nothing is recorded, and nothing once all are
        forgotten."""
        self.set(b"max-deliveries", b"9")
        gone = self.returned()
        kept = self.returned(b"r")
        self.node.delete([gone])
        self.counters.record()
        self.assertEqual([kept], [found for found, _, _ in self.counted])
        self.counted.clear()
        self.counters.changed(self.job(kept))
        self.node.flush_all()
        self.counters.record()
        self.assertEqual([], self.counted)
