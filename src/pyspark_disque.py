"""Where Spark looks for ``format("disque")``."""

from disque_tx.spark.sources import DisqueSource as DefaultSource

__all__ = ["DefaultSource"]
