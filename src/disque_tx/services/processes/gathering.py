"""Figures of all processes of the daemon, for one of them that is asked: by way of the parent,
which only passes questions and answers on.

1. ``["ask", n]`` to the parent, which sends ``["asked", process, n]`` to all others.
2. ``["answer", process, n, figures]`` to the parent, which sends ``["answered", from, n, figures]``
   to the one that asked.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall
from zope.interface import implementer

from disque_tx.services.interfaces import INodeView, IProcesses
from disque_tx.services.processes.channel import Message

#: For how long answers are waited for.
TIMEOUT_S: Final = 1.0
Found = dict[int, dict[str, Any]]


class _Question:
    """One that is under way. ``left``: who has not answered."""

    def __init__(self, left: set[int], found: Found, done: Deferred[Found]) -> None:
        self.left = left
        self.found = found
        self.done = done
        self.timeout: IDelayedCall | None = None


@implementer(IProcesses)
class Gathering:
    """In the process with this ``number``. ``send``: to the parent. ``others``: the numbers of
    those that are asked. ``nodes``: the numbers of all by the IDs of their nodes."""

    def __init__(
        self, number: int, view: INodeView, reactor: Any, send: Callable[[Message], object]
    ) -> None:
        self.others: list[int] = []
        self.nodes: dict[bytes, int] = {}
        self._number = number
        self._view = view
        self._reactor = reactor
        self._send = send
        self._open: dict[int, _Question] = {}
        self._last = 0

    def numbers(self) -> dict[bytes, int]:
        """The numbers of the processes by the IDs of their nodes."""
        return self.nodes

    def gather(self) -> Deferred[Found]:
        """The figures of all processes that answer in time."""
        self._last += 1
        token = self._last
        done: Deferred[Found] = Deferred(lambda _: self._cancelled(token))
        question = _Question(set(self.others), {self._number: self._view.figures()}, done)
        self._open[token] = question
        if question.left:
            question.timeout = self._reactor.callLater(TIMEOUT_S, self._close, token)
            self._send(["ask", token])
        else:
            self._close(token)
        return done

    def asked(self, asker: int, token: int) -> None:
        """Another process wants the figures of this one."""
        self._send(["answer", asker, token, self._view.figures()])

    def answered(self, number: int, token: int, figures: dict[str, Any]) -> None:
        """The answer of another process."""
        question = self._open.get(token)
        if question is not None and number in question.left:
            question.left.remove(number)
            question.found[number] = figures
            if not question.left:
                self._close(token)

    def _close(self, token: int) -> None:
        question = self._forget(token)
        if question is not None:
            question.done.callback(dict(sorted(question.found.items())))

    def _cancelled(self, token: int) -> None:
        self._forget(token)

    def _forget(self, token: int) -> _Question | None:
        question = self._open.pop(token, None)
        if question is not None and question.timeout is not None and question.timeout.active():
            question.timeout.cancel()
        return question
