"""Functions for ``foreachBatch`` of queries that read queues."""

from __future__ import annotations

from disque_tx.spark.foreach.delta import disque_delta
from disque_tx.spark.foreach.nack import disque_nack
from disque_tx.spark.foreach.records import good_records

__all__ = ["disque_delta", "disque_nack", "good_records"]
