"""Where Spark looks for ``format("disque")``."""

from disque_tx.spark.formats.datasources import DisqueSource as DefaultSource

__all__ = ["DefaultSource"]
