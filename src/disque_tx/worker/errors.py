"""What can go wrong around workers and jobs that are done by them."""

from __future__ import annotations

from disque_tx.errors import DisqueError


class WorkerError(DisqueError):
    """Base of every error of this package."""


class BadHandlers(WorkerError):
    """What was given as handlers cannot handle jobs; the text says why, and what to give."""


class ImportFailed(BadHandlers):
    """The module of the handlers is there and cannot be imported; the cause says where it fails."""


class Hopeless(WorkerError):
    """This job fails and would fail again: it becomes a dead letter at once.

    Handlers raise it with a reason.
    """


class Undecodable(Hopeless):
    """The body of a job is not what the serializer of its queue makes."""


class UnknownTask(WorkerError):
    """The job names a task that this worker does not have.

    An ordinary failure: while programs are being replaced, another worker may have it. ``reply``:
    where somebody waits for the result.
    """

    def __init__(self, text: str, reply: str | None = None) -> None:
        super().__init__(text)
        self.reply = reply


class TimeLimitPassed(WorkerError):
    """The handler took longer than it may."""


class HandlerDied(WorkerError):
    """The process of the handler, or the command, ended in a way that means failure."""


class Draining(WorkerError):
    """The worker stops and could not wait for this handler any longer."""


class NotSerializable(WorkerError, TypeError):
    """A value cannot be sent with this serializer; the text names the types that can."""


class AllSlotsLost(WorkerError):
    """Every slot of the worker is held by a handler that passed its time limit and cannot be
    stopped; the process must be started again."""


class JobFailed(WorkerError):
    """The job whose result is asked for has become a dead letter. ``reason``: why."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


class ResultTimeout(WorkerError):
    """No result came in time; it may come later."""


class NoResult(WorkerError):
    """The job was added without asking for a result."""
