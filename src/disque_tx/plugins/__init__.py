"""What protocols for clients, which are plugins, import: the only door to the server.

A protocol that works within the turns of the node, as fast as RESP, finds the rest of what it needs
in :mod:`disque_tx.plugins.direct`.
"""

from disque_tx.errors import CommandError
from disque_tx.messages.events import KIND_NAMES, REASON_NAMES
from disque_tx.plugins.interfaces import (
    IClientProtocol,
    IConnection,
    IHost,
    ILookup,
    INodeView,
    IProcesses,
)
from disque_tx.plugins.values import (
    Durations,
    Health,
    JobEvent,
    ProtocolFigures,
    QueueCounts,
    QueueFigures,
    Role,
)

__all__ = [
    "KIND_NAMES",
    "REASON_NAMES",
    "CommandError",
    "Durations",
    "Health",
    "IClientProtocol",
    "IConnection",
    "IHost",
    "ILookup",
    "INodeView",
    "IProcesses",
    "JobEvent",
    "ProtocolFigures",
    "QueueCounts",
    "QueueFigures",
    "Role",
]
