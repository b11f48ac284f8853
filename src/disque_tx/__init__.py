"""disque-tx: the distributed job queue Disque 1.0-rc1, as a daemon on Twisted, and its clients.

``disque_tx.Disque`` is the blocking client; see :mod:`disque_tx.client.blocking`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from disque_tx.client.blocking import Disque

__all__ = ["Disque", "__version__"]

__version__ = "1.1.0.dev0"


def __getattr__(name: str) -> Any:
    """The client comes when it is asked for: the daemon has no use for it, nor for redis-py."""
    if name != "Disque":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from disque_tx.client.blocking import Disque

    return Disque
