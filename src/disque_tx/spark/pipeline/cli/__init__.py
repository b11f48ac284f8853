"""The program ``disque-pipeline``."""

from __future__ import annotations

from disque_tx.spark.pipeline.cli.program import command, main

__all__ = ["command", "main"]
