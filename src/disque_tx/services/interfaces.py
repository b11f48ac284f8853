"""The former name of :mod:`disque_tx.plugins`."""

from __future__ import annotations

import warnings

from disque_tx.plugins.interfaces import (
    KIND_NAMES,
    REASON_NAMES,
    CommandError,
    Durations,
    Health,
    IClientProtocol,
    IConnection,
    IHost,
    ILookup,
    INodeView,
    IProcesses,
    JobEvent,
    ProtocolFigures,
    QueueCounts,
    QueueFigures,
    Role,
)
from disque_tx.services.turns.interfaces import IClock, IRoundsReactor, ITurn

__all__ = [
    "KIND_NAMES",
    "REASON_NAMES",
    "CommandError",
    "Durations",
    "Health",
    "IClientProtocol",
    "IClock",
    "IConnection",
    "IHost",
    "ILookup",
    "INodeView",
    "IProcesses",
    "IRoundsReactor",
    "ITurn",
    "JobEvent",
    "ProtocolFigures",
    "QueueCounts",
    "QueueFigures",
    "Role",
]

warnings.warn(
    "disque_tx.services.interfaces is now disque_tx.plugins; the old name works until 2.0",
    DeprecationWarning,
    stacklevel=2,
)
