"""Adds event logs to a table, each event once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from disque_tx.spark.lazy import names_from

if TYPE_CHECKING:
    from disque_tx.spark.pipeline.ingest.batches import IngestReport
    from disque_tx.spark.pipeline.ingest.ingestion import ingest

__all__ = ["IngestReport", "ingest"]
__getattr__ = names_from(
    __name__, {"IngestReport": f"{__name__}.batches", "ingest": f"{__name__}.ingestion"}
)
