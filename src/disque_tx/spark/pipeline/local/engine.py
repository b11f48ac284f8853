"""DuckDB as an engine of the pipeline."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from disque_tx.spark.pipeline.local.auditing import audit
from disque_tx.spark.pipeline.local.lifecycle import lifecycle

if TYPE_CHECKING:
    from disque_tx.spark.pipeline.ingest.batches import IngestReport
    from disque_tx.spark.pipeline.lifecycle.made import Made
    from disque_tx.spark.pipeline.lifecycle.verdicts import Audit


class DuckEngine:
    """DuckDB, in this process."""

    def ingest(self, paths: Iterable[str], into: str) -> IngestReport:
        """Add event logs to a table."""
        # Not above: what parses lines takes a while to import.
        from disque_tx.spark.pipeline.local.ingestion import ingest

        return ingest(paths, into)

    def lifecycle(
        self, table: str, into: str, window_s: int, whole: bool, as_of: int | str | None
    ) -> Made:
        """Make tables of jobs, queues and nodes."""
        return lifecycle(table, into, window_s, whole, as_of)

    def audit(self, table: str, limit: int, skew_ms: int, as_of: int | str | None) -> Audit:
        """Find violations of guarantees."""
        return audit(table, limit, skew_ms, as_of)
