"""Where Spark looks for ``format("disque_aof")``."""

from disque_tx.spark.formats.datasources import LogSource as DefaultSource

__all__ = ["DefaultSource"]
