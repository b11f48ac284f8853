"""Work on a question about queues, and who gets the result."""

from __future__ import annotations

from disque_tx.core.base.slices import Task


class Receiver:
    """Gets the result of a question at one node, as words."""

    __slots__ = ()

    def result(self, words: list[bytes]) -> None:
        """The work is done."""
        raise NotImplementedError

    def gone(self) -> bool:
        """Whether nobody wants the result any more."""
        raise NotImplementedError


class ResultTask(Task):
    """Work in slices with a result."""

    __slots__ = ("receiver",)

    def __init__(self, receiver: Receiver) -> None:
        self.receiver: Receiver = receiver
