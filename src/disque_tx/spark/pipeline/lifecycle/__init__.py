"""Finds out what became of each job and each queue, and what should not have happened."""

from __future__ import annotations

from disque_tx.spark.pipeline.lifecycle.results import RESULTS, lifecycle

__all__ = ["RESULTS", "lifecycle"]
