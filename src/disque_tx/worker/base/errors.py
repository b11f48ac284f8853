"""Errors of workers, and of the jobs that they do."""

from __future__ import annotations

from disque_tx.errors import DisqueError


class WorkerError(DisqueError):
    """Base of every error of this package."""


class BadHandlers(WorkerError):
    """Handlers that cannot run jobs were given; the text says why, and what to pass instead."""


class ImportFailed(BadHandlers):
    """The module of the handlers exists but cannot be imported; the cause says where it fails."""


class Hopeless(WorkerError):
    """This job fails and would fail again: it becomes a dead letter at once.

    Handlers raise it with a reason.
    """


class Undecodable(Hopeless):
    """The body of a job cannot be decoded by the serializer of its queue."""


class UnknownTask(WorkerError):
    """The job names a task that this worker does not have.

    An ordinary failure: during a deployment another worker may have the task. ``reply``: the queue
    for the result, if one was asked for.
    """

    def __init__(self, text: str, reply: str | None = None) -> None:
        super().__init__(text)
        self.reply = reply


class TimeLimitPassed(WorkerError):
    """The handler ran longer than its time limit."""


class HandlerDied(WorkerError):
    """The command, or the process of the handler, failed: by a signal or a status other than 0."""


class Draining(WorkerError):
    """The worker stops, and the grace period was over before this handler ended."""


class NotSerializable(WorkerError, TypeError):
    """A value cannot be sent with this serializer; the text names the types that can."""


class AllSlotsLost(WorkerError):
    """Every slot of the worker is held by a handler that passed its time limit and cannot be
    stopped; the process must be restarted."""


class JobFailed(WorkerError):
    """The job has become a dead letter, so there is no result. ``reason``: why."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


class ResultTimeout(WorkerError):
    """No result came in time; it may come later."""


class NoResult(WorkerError):
    """The job was added without asking for a result."""


class NoSchedules(WorkerError):
    """Tasks are to recur, and the nodes know no schedules: they are originals."""
