"""For programs that use Disque: values and errors of all clients.

The blocking client is ``disque_tx.Disque``; see :mod:`disque_tx.client.blocking`. The one for
asyncio is ``disque_tx.client.aio.Disque``; see :mod:`disque_tx.client.aio.client`. The one for
Twisted is ``disque_tx.client.DisqueClient``; see :mod:`disque_tx.client.tx.client`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from disque_tx.client.errors import (
    AlreadyAcknowledged,
    AuthenticationRefused,
    BadAddress,
    BadJobId,
    BrokenReply,
    CannotConnect,
    CannotPersist,
    ClientError,
    ConnectionLost,
    Leaving,
    Loading,
    NotEnoughReplicas,
    OptionUnknown,
    OutcomeUnknown,
    OutOfMemory,
    Paused,
    PublicationIncomplete,
    QueueFull,
    Refused,
    ScanInterrupted,
    TooLate,
    UnknownJob,
)
from disque_tx.client.options import TLS, AddOptions
from disque_tx.client.requests.counting import CountedQueue, Flushed, QueueCounts, QueuePage
from disque_tx.client.requests.schedules import Schedule
from disque_tx.client.values import (
    AddedOnce,
    ClusterNode,
    Hello,
    Job,
    JobDetails,
    JobProgress,
    NodeInfo,
    PolicySetting,
    Publication,
    QueueStat,
)

if TYPE_CHECKING:
    from disque_tx.client.tx.client import DisqueClient, TakenJob

__all__ = [
    "TLS",
    "AddOptions",
    "AddedOnce",
    "AlreadyAcknowledged",
    "AuthenticationRefused",
    "BadAddress",
    "BadJobId",
    "BrokenReply",
    "CannotConnect",
    "CannotPersist",
    "ClientError",
    "ClusterNode",
    "ConnectionLost",
    "CountedQueue",
    "DisqueClient",
    "Flushed",
    "Hello",
    "Job",
    "JobDetails",
    "JobProgress",
    "Leaving",
    "Loading",
    "NodeInfo",
    "NotEnoughReplicas",
    "OptionUnknown",
    "OutOfMemory",
    "OutcomeUnknown",
    "Paused",
    "PolicySetting",
    "Publication",
    "PublicationIncomplete",
    "QueueCounts",
    "QueueFull",
    "QueuePage",
    "QueueStat",
    "Refused",
    "ScanInterrupted",
    "Schedule",
    "TakenJob",
    "TooLate",
    "UnknownJob",
]

_TWISTED = ("DisqueClient", "TakenJob")


def __getattr__(name: str) -> Any:
    """What needs Twisted, and its global reactor, comes when it is asked for."""
    if name not in _TWISTED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("disque_tx.client.tx.client"), name)
