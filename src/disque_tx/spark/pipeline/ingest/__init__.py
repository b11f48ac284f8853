"""Adds event logs to a table, each event once."""

from __future__ import annotations

from disque_tx.spark.pipeline.ingest.ingestion import Report, ingest

__all__ = ["Report", "ingest"]
