"""What an engine of the pipeline does, and Spark as one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from pyspark.sql import SparkSession

from disque_tx.spark.pipeline.ingest.batches import IngestReport
from disque_tx.spark.pipeline.ingest.ingestion import ingest
from disque_tx.spark.pipeline.lifecycle.audit import audit
from disque_tx.spark.pipeline.lifecycle.made import Made
from disque_tx.spark.pipeline.lifecycle.results import lifecycle
from disque_tx.spark.pipeline.lifecycle.verdicts import Audit


class Engine(Protocol):
    """Computes what the commands of the same names write or print. Arguments and errors are those
    of the functions of the same names for Spark."""

    def ingest(self, paths: Iterable[str], into: str) -> IngestReport:
        """Add event logs to a table."""

    def lifecycle(
        self, table: str, into: str, window_s: int, whole: bool, as_of: int | str | None
    ) -> Made:
        """Make tables of jobs, queues and nodes."""

    def audit(self, table: str, limit: int, skew_ms: int, as_of: int | str | None) -> Audit:
        """Find violations of guarantees."""


class SparkEngine:
    """Spark, by a session."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def ingest(self, paths: Iterable[str], into: str) -> IngestReport:
        """Add event logs to a table."""
        return ingest(self._spark, paths, into)

    def lifecycle(
        self, table: str, into: str, window_s: int, whole: bool, as_of: int | str | None
    ) -> Made:
        """Make tables of jobs, queues and nodes."""
        return lifecycle(self._spark, table, into, window_s, whole, as_of)

    def audit(self, table: str, limit: int, skew_ms: int, as_of: int | str | None) -> Audit:
        """Find violations of guarantees."""
        return audit(self._spark, table, limit, skew_ms, as_of)
