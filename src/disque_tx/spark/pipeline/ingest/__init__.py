"""Adds event logs to a table, each event once."""

from __future__ import annotations

from disque_tx.spark.pipeline.ingest.ingestion import IngestReport, ingest

__all__ = ["IngestReport", "ingest"]
