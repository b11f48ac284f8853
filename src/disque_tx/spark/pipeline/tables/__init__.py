"""Delta tables: read by Spark without Delta's archives, and written exactly once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from disque_tx.spark.lazy import names_from

if TYPE_CHECKING:
    from disque_tx.spark.pipeline.tables.table import EventTable, Table

__all__ = ["EventTable", "Table"]
__getattr__ = names_from(__name__, dict.fromkeys(__all__, f"{__name__}.table"))
