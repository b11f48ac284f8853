"""Where Spark looks for ``format("disque_events")``."""

from disque_tx.spark.formats.datasources import EventSource as DefaultSource

__all__ = ["DefaultSource"]
