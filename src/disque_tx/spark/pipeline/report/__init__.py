"""The report: one page for people."""

from __future__ import annotations

from disque_tx.spark.pipeline.report.figures import ReportScope
from disque_tx.spark.pipeline.report.page import report

__all__ = ["ReportScope", "report"]
