"""Defects of answers that stand in a line (see :mod:`tests.mutants.defects`)."""

from __future__ import annotations

from typing import Any


def answer_out_of_turn(right: Any) -> Any:
    """An answer leaves as soon as it is known, whatever the client sent before."""

    def decided(self: Any, job_id: bytes, replies: Any, mark: int) -> None:
        self._answers.remove(self.waiting.pop(job_id))
        self.give(replies)

    return decided


def await_first_only(right: Any) -> Any:
    """A client that is gone waited for one job, as far as the node knows."""
    return lambda self, client: right(self, client)[:1]


def overtake(right: Any) -> Any:
    """What is known at once is answered at once."""

    def end_ahead(self: Any, client: Any, line: Any, mark: int) -> None:
        part = client.replies.cut(mark)
        right(self, client, line, mark)
        client.replies.paste(part)

    return end_ahead
