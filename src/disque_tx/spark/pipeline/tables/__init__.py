"""Tables that change by commits, and stay readable while they do."""

from __future__ import annotations

from disque_tx.spark.pipeline.tables.table import EventTable

__all__ = ["EventTable"]
