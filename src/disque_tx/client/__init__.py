"""For programs that use Disque: values and errors of all clients.

The blocking client is ``disque_tx.Disque``; see :mod:`disque_tx.client.blocking`.
"""

from __future__ import annotations

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
from disque_tx.client.values import (
    ClusterNode,
    Hello,
    Job,
    JobDetails,
    NodeInfo,
    Publication,
    QueueStat,
)

__all__ = [
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
    "Hello",
    "Job",
    "JobDetails",
    "Leaving",
    "Loading",
    "NodeInfo",
    "NotEnoughReplicas",
    "OutOfMemory",
    "OutcomeUnknown",
    "Paused",
    "Publication",
    "PublicationIncomplete",
    "QueueFull",
    "QueueStat",
    "Refused",
    "ScanInterrupted",
    "TooLate",
    "UnknownJob",
]
