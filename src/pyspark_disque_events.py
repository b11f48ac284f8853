"""Where Spark looks for ``format("disque_events")``."""

from disque_tx.spark.sources import EventSource as DefaultSource

__all__ = ["DefaultSource"]
