"""``audit`` by DuckDB finds what Spark finds."""

from __future__ import annotations

from disque_tx.spark.pipeline.lifecycle.audit import audit as by_spark
from disque_tx.spark.pipeline.lifecycle.verdicts import Audit
from disque_tx.spark.pipeline.local import jobs
from disque_tx.spark.pipeline.local.auditing import audit as by_duckdb
from tests.spark.pipeline import shop
from tests.spark.pipeline.cases import PipelineCase
from tests.spark.pipeline.lifecycle import test_audit
from tests.spark.pipeline.local.tables import anything
from tests.spark.pipeline.logs import Node


class AuditTests(test_audit.AuditTests):
    """Planted violations, by DuckDB."""

    def audit(self, *nodes: Node, limit: int = 100) -> Audit:
        """Audit the events of these nodes."""
        return by_duckdb(self.ingested(*nodes), limit)


class SameTests(PipelineCase):
    """The same events, by both engines."""

    def assert_engines_agree(self, *nodes: Node) -> Audit:
        """Assert that both engines find the same; returns it."""
        table = self.ingested(*nodes)
        for words in ((100, 1000), (3, 0), (1, 86_400_000)):
            found = by_spark(self.spark, table, *words)
            self.assertEqual(found, by_duckdb(table, *words))
        return found

    def test_shop(self) -> None:
        """An hour as it may really be has the same verdicts."""
        self.assert_engines_agree(*shop.nodes())

    def test_parts(self) -> None:
        """Jobs that are not computed all at once have the same verdicts."""
        self.patch(jobs, "JOBS_AT_ONCE", 20)
        self.assert_engines_agree(*anything(6, "ab", 200))

    def test_anything(self) -> None:
        """Events in any order, with gaps, restarts and clocks that differ, have the same verdicts
        of each kind, and the same jobs are listed."""
        found = self.assert_engines_agree(*anything(5, "abc", 500))
        checks = {check for check, _ in found.counts}
        self.assertEqual(
            {"lost", "retry0-twice", "delivered-after-ack", "under-replicated"}, checks
        )
        self.assertEqual({"violated", "unknown"}, {verdict for _, verdict in found.counts})
