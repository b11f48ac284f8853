"""Spark and Disque: queues, logs and events as tables and streams.

The formats ``disque``, ``disque_aof`` and ``disque_events`` are found by Spark under these names.
:func:`session` makes a session in which they work. Needs ``pip install 'disque-tx[spark]'``.
"""

from __future__ import annotations

from disque_tx.spark.session import session
from disque_tx.spark.sink.staging import discard_staged

__all__ = ["discard_staged", "session"]
