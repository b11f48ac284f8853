"""Finds out what became of each job and each queue, and what should not have happened."""

from __future__ import annotations

from typing import TYPE_CHECKING

from disque_tx.spark.lazy import names_from

if TYPE_CHECKING:
    from disque_tx.spark.pipeline.lifecycle.made import RESULTS
    from disque_tx.spark.pipeline.lifecycle.results import lifecycle

__all__ = ["RESULTS", "lifecycle"]
__getattr__ = names_from(
    __name__, {"RESULTS": f"{__name__}.made", "lifecycle": f"{__name__}.results"}
)
