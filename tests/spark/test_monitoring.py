"""Metrics of queries."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

from prometheus_client import CollectorRegistry
from pyspark.sql.streaming.listener import (
    QueryProgressEvent,
    QueryTerminatedEvent,
    StreamingQueryProgress,
)
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.spark.monitoring import QueryMetrics

_ID = "00000000-0000-0000-0000-000000000001"


def progress(name: str | None, *offsets: Any) -> QueryProgressEvent:
    """A report of a batch of 7 rows; ``offsets``: what its sources report."""
    numbers = {"inputRowsPerSecond": 1.0, "processedRowsPerSecond": 1.0, "numInputRows": 7}
    source = {"description": "s", "startOffset": "a", "endOffset": "b", "metrics": {}, **numbers}
    report = {
        "id": _ID, "runId": _ID, "name": name, "timestamp": "", "batchId": 1,
        "batchDuration": 1500, "durationMs": {}, "eventTime": {}, "stateOperators": [],
        "observedMetrics": {}, "sink": {"description": "s", "numOutputRows": 1, "metrics": {}},
        "sources": [{**source, "latestOffset": offset} for offset in offsets], **numbers,
    }  # fmt: skip
    return QueryProgressEvent(StreamingQueryProgress.fromJson(report))


class MetricsTests(SynchronousTestCase):
    """Events as Spark sends them."""

    def setUp(self) -> None:
        self.registry = CollectorRegistry()
        self.metrics = QueryMetrics(self.registry)

    def value(self, name: str, query: str = "mail") -> float | None:
        """A metric of a query."""
        return self.registry.get_sample_value(name, {"query": query})

    def test_progress(self) -> None:
        """Lag is that of all sources of this package; rows add up, and times are of the last
        batch."""
        one = json.dumps({"queued": 3, "inFlight": 1, "oldestS": 2.5, "queues": {}})
        two = json.dumps({"queued": 4, "inFlight": 1, "oldestS": 0.5, "queues": {}})
        for _ in range(2):
            self.metrics.onQueryProgress(progress("mail", one, two, '{"p": 1}', "7", None, "x y"))
        self.assertEqual(7, self.value("disque_spark_queued_jobs"))
        self.assertEqual(2, self.value("disque_spark_in_flight_jobs"))
        self.assertEqual(2.5, self.value("disque_spark_oldest_seconds"))
        self.assertEqual(1.5, self.value("disque_spark_batch_seconds"))
        self.assertEqual(14, self.value("disque_spark_rows_total"))

    def test_ended(self) -> None:
        """What has ended is not shown any more; one without a name is shown by its ID."""
        self.metrics.onQueryProgress(progress(None, '{"queued": 3}'))
        self.assertEqual(3, self.value("disque_spark_queued_jobs", _ID))
        ended = QueryTerminatedEvent(UUID(_ID), UUID(_ID), None, None)
        for _ in range(2):
            self.metrics.onQueryTerminated(ended)
        self.assertIsNone(self.value("disque_spark_queued_jobs", _ID))
        self.assertIsNone(self.value("disque_spark_rows_total", _ID))
