"""Workers: programs that do the jobs of queues, and functions whose calls become jobs.

:class:`Worker` is a Twisted service; ``disque work`` runs one from the command line. :class:`Queue`
makes tasks of functions. See ``docs/how-to/run-workers.md``.
"""

from __future__ import annotations

from disque_tx.worker.base.context import Context, current_job
from disque_tx.worker.base.errors import (
    AllSlotsLost,
    BadHandlers,
    Hopeless,
    JobFailed,
    NoResult,
    NoSchedules,
    NotSerializable,
    ResultTimeout,
    TimeLimitPassed,
    Undecodable,
    UnknownTask,
    WorkerError,
)
from disque_tx.worker.service import Worker
from disque_tx.worker.settling.deadletters import Letter
from disque_tx.worker.tasks.handlers import Command, batch, process
from disque_tx.worker.tasks.policy import Backoff
from disque_tx.worker.tasks.results import AsyncPending, Pending
from disque_tx.worker.tasks.serializers import JSON, ISerializer, Raw
from disque_tx.worker.tasks.tasks import Queue, Task

__all__ = [
    "JSON",
    "AllSlotsLost",
    "AsyncPending",
    "Backoff",
    "BadHandlers",
    "Command",
    "Context",
    "Hopeless",
    "ISerializer",
    "JobFailed",
    "Letter",
    "NoResult",
    "NoSchedules",
    "NotSerializable",
    "Pending",
    "Queue",
    "Raw",
    "ResultTimeout",
    "Task",
    "TimeLimitPassed",
    "Undecodable",
    "UnknownTask",
    "Worker",
    "WorkerError",
    "batch",
    "current_job",
    "process",
]
