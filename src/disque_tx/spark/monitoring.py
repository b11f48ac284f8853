"""Metrics of streaming queries for Prometheus, from what Spark reports after each batch."""

from __future__ import annotations

import json
from typing import Any, Final

from prometheus_client import REGISTRY, CollectorRegistry, Counter, Gauge
from pyspark.sql.streaming.listener import (
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
    StreamingQueryProgress,
)

#: Name → description, and where a lag has it.
_LAG: Final = {
    "disque_spark_queued_jobs": ("Jobs that wait in the queues of a query", "queued"),
    "disque_spark_in_flight_jobs": ("Jobs that were fetched and not acknowledged", "inFlight"),
    "disque_spark_oldest_seconds": ("For how long the first job has waited", "oldestS"),
}
_QUERY: Final = ("query",)


class QueryMetrics(StreamingQueryListener):
    """Keeps the metrics of all queries of a session, as in
    ``spark.streams.addListener(QueryMetrics())``. Metrics are labelled by the name of the query, or
    its ID if it has none.

    ``registry``: where the metrics are, by default that of ``prometheus_client``.
    """

    def __init__(self, registry: CollectorRegistry = REGISTRY) -> None:
        self._lag = {
            key: Gauge(name, text, _QUERY, registry=registry) for name, (text, key) in _LAG.items()
        }
        self._batch_s = Gauge(
            "disque_spark_batch_seconds", "Time of the last batch", _QUERY, registry=registry
        )
        self._rows = Counter("disque_spark_rows", "Rows of all batches", _QUERY, registry=registry)
        self._names: dict[str, str] = {}

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        """Show nothing before the first batch."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        """A batch is done, or there was nothing to do."""
        progress = event.progress
        query = progress.name or str(progress.id)
        self._names[str(progress.id)] = query
        self._batch_s.labels(query).set(progress.batchDuration / 1000)
        self._rows.labels(query).inc(progress.numInputRows)
        for key, value in _lag_of(progress).items():
            self._lag[key].labels(query).set(value)

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        """Remove the metrics of a query that has ended."""
        query = self._names.pop(str(event.id), None)
        for metric in (*self._lag.values(), self._batch_s, self._rows):
            if query is not None:
                metric.labels(query)  # a query of other sources has no lag to remove
                metric.remove(query)


def _lag_of(progress: StreamingQueryProgress) -> dict[str, float]:
    """The lag of a query: sums, and the greatest age, over its sources of this package."""
    found: dict[str, float] = {}
    for source in progress.sources:
        lag = _parsed(source.latestOffset)
        for _, key in _LAG.values():
            if key in lag:
                both = (found.get(key, 0.0), float(lag[key]))
                found[key] = max(both) if key == "oldestS" else sum(both)
    return found


def _parsed(offset: str | None) -> dict[str, Any]:
    """What a source reports; nothing if it is another one."""
    try:
        lag = json.loads(offset or "null")
    except ValueError:
        return {}
    return lag if isinstance(lag, dict) and "queued" in lag else {}
