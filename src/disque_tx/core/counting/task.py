"""Work on a question of a node or about queues, who asks it, and who gets the result."""

from __future__ import annotations

from mypy_extensions import i64, mypyc_attr, trait

from disque_tx.core.base.slices import SlicedTask


@mypyc_attr(allow_interpreted_subclasses=True)
class ResultReceiver:
    """Gets the result of a question at one node, as words."""

    __slots__ = ()

    def result(self, words: list[bytes]) -> None:
        """The work is done."""
        raise NotImplementedError

    def gone(self) -> bool:
        """Whether nobody wants the result any more."""
        raise NotImplementedError

    def ended(self) -> None:
        """The work in slices is over, with or without a result."""

    def failed(self) -> None:
        """A fault of this program ended the work: there will be no result."""


class ResultTask(SlicedTask):
    """Work in slices with a result."""

    __slots__ = ("receiver",)

    def __init__(self, receiver: ResultReceiver) -> None:
        self.receiver: ResultReceiver = receiver

    def over(self) -> None:
        self.receiver.ended()

    def failed(self) -> None:
        self.receiver.failed()
        self.receiver.ended()


class Asker:
    """Gets the answers of other nodes."""

    __slots__ = ()

    def answer(self, words: list[bytes], sender: bytes) -> bool:
        """The answer of one node, with its ID; ``False`` if it is none."""
        raise NotImplementedError

    def all_answered(self, missing: list[bytes]) -> None:
        """No more answers will come. ``missing``: IDs of the nodes without one, in order."""
        raise NotImplementedError


@trait
class Performer:
    """Answers questions, and has others answer them."""

    def ask_others(self, words: list[bytes], asker: Asker, scope: i64, one: bytes) -> None:
        """Ask the other nodes of this scope."""
        raise NotImplementedError

    def perform(self, words: list[bytes], receiver: ResultReceiver) -> bool:
        """Answer a question of this node or of another one; ``False`` if it is none."""
        raise NotImplementedError

    def now_ms(self) -> i64:
        """The time of the turn."""
        raise NotImplementedError
