"""The former name of :mod:`disque_tx.services.node.root`."""

from __future__ import annotations

import warnings

from disque_tx.services.node.root import NodeRoot, prepare

__all__ = ["NodeRoot", "prepare"]

warnings.warn(
    "disque_tx.services.root is now disque_tx.services.node.root; this name works until 2.0",
    DeprecationWarning,
    stacklevel=2,
)
