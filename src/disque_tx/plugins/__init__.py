"""What protocols for clients, which are plugins, import: the only door to the server.

A protocol that works within the turns of the node, as fast as RESP, finds the rest of what it needs
in :mod:`disque_tx.plugins.direct`. ``*_RANGE``: least and greatest number of an option of ADDJOB.
``QUEUE_BYTES_MAX``: of the longest name of a queue. ``HISTORY_NUMBERS``: of a point of the history,
of which the first ``HISTORY_COUNTS`` are events.
"""

from disque_tx.core.statistics.rings import COUNTS as HISTORY_COUNTS
from disque_tx.core.statistics.rings import NUMBERS as HISTORY_NUMBERS
from disque_tx.errors import CommandError
from disque_tx.messages.events import KIND_NAMES, REASON_NAMES
from disque_tx.messages.limits import (
    DELAY_RANGE,
    MAXLEN_RANGE,
    QUEUE_BYTES_MAX,
    REPLICATE_RANGE,
    RETRY_RANGE,
    TTL_RANGE,
)
from disque_tx.plugins.interfaces import (
    IClientProtocol,
    IConnection,
    IEventFiles,
    IHost,
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
    "DELAY_RANGE",
    "HISTORY_COUNTS",
    "HISTORY_NUMBERS",
    "KIND_NAMES",
    "MAXLEN_RANGE",
    "QUEUE_BYTES_MAX",
    "REASON_NAMES",
    "REPLICATE_RANGE",
    "RETRY_RANGE",
    "TTL_RANGE",
    "CommandError",
    "Durations",
    "Health",
    "IClientProtocol",
    "IConnection",
    "IEventFiles",
    "IHost",
    "INodeView",
    "IProcesses",
    "JobEvent",
    "ProtocolFigures",
    "QueueCounts",
    "QueueFigures",
    "Role",
]
