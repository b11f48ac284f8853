"""Delta tables: read by Spark without Delta's archives, and written exactly once."""

from __future__ import annotations

from disque_tx.spark.pipeline.tables.table import EventTable, Table

__all__ = ["EventTable", "Table"]
