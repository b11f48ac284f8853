"""Spark and Disque: queues, logs and events as tables and streams.

The formats ``disque``, ``disque_aof`` and ``disque_events`` are found by Spark under these names.
:func:`session` makes a session in which they work. Needs ``pip install 'disque-tx[spark]'``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from disque_tx.spark.lazy import names_from

if TYPE_CHECKING:
    from disque_tx.spark.sessions import session
    from disque_tx.spark.sink.staging import discard_staged

__all__ = ["discard_staged", "session"]
__getattr__ = names_from(
    __name__,
    {"session": "disque_tx.spark.sessions", "discard_staged": "disque_tx.spark.sink.staging"},
)


def __dir__() -> list[str]:
    return __all__
