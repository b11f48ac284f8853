"""The blocking client: for scripts, notebooks, and workers without a reactor."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from disque_tx.client.blocking.client import Disque, Queue, TakenJob

__all__ = ["Disque", "Queue", "TakenJob"]


def __getattr__(name: str) -> Any:
    """The client comes when it is asked for: pipelined connections, as every process of a stream
    of Spark opens them, have no use for it, nor for redis-py."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.client"), name)
