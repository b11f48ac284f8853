"""Figures of all processes of the daemon, for one of them that is asked: by way of the parent,
which only passes questions and answers on.

1. ``["ask", n, figures]`` to the parent, which sends ``["asked", process, n]`` to all others, and
   as the answer of process 0 what processes that ended had counted (:mod:`.kept`).
2. Those that have not answered in time may be about to end: ``["late", n, numbers]`` to the parent,
   which answers with their counters as with those of process 0.
3. ``["answer", process, n, figures]`` to the parent, which sends ``["answered", from, n, figures]``
   to the one that asked.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, Final

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall
from zope.interface import implementer

from disque_tx.plugins.interfaces import INodeView, IProcesses
from disque_tx.plugins.values import JobEvent
from disque_tx.services.processes.channel import Message
from disque_tx.services.processes.following import Following

#: For how long answers are waited for.
TIMEOUT_S: Final = 1.0
#: In place of the number of a process: those that have ended.
ENDED: Final = 0
Found = dict[int, dict[str, Any]]


class _Question:
    """A question in progress. ``left``: who has not answered. ``late``: the parent was asked about
    some of them."""

    def __init__(self, left: set[int], found: Found, done: Deferred[Found]) -> None:
        self.left = left
        self.found = found
        self.done = done
        self.late = False
        self.timeout: IDelayedCall | None = None


@implementer(IProcesses)
class FigureGathering:
    """In the process with this ``number``. ``send``: to the parent. ``others``: the numbers of
    those that are asked. ``nodes``: the numbers of all by the IDs of their nodes.
    ``event_folders``: those of all processes."""

    def __init__(
        self,
        number: int,
        view: INodeView,
        reactor: Any,
        send: Callable[[Message], object],
        event_folders: Callable[[], list[str]] = list,
    ) -> None:
        self.others: list[int] = []
        self.nodes: dict[bytes, int] = {}
        self.following = Following(reactor, send)
        self._number = number
        self._event_folders = event_folders
        self._view = view
        self._reactor = reactor
        self._send = send
        self._open: dict[int, _Question] = {}
        self._last = 0

    def numbers(self) -> dict[bytes, int]:
        """The numbers of the processes by the IDs of their nodes."""
        return self.nodes

    def event_folders(self) -> list[str]:
        """The folders of the event logs of all processes."""
        return self._event_folders()

    def follow(
        self, kinds: Collection[int], pattern: str, tell: Callable[[list[JobEvent], int], None]
    ) -> Callable[[], None]:
        """Call ``tell`` with events of the other processes."""
        return self.following.follow(kinds, pattern, tell)

    def gather(self) -> Deferred[Found]:
        """The figures of all processes that answer in time."""
        self._last += 1
        token = self._last
        done: Deferred[Found] = Deferred(lambda _: self._cancelled(token))
        mine = self._view.figures()
        question = _Question({ENDED, *self.others}, {self._number: mine}, done)
        self._open[token] = question
        question.timeout = self._reactor.callLater(TIMEOUT_S, self._over, token)
        self._send(["ask", token, mine])
        return done

    def asked(self, asker: int, token: int) -> None:
        """Send the figures of this process to another one, which asked for them."""
        self._send(["answer", asker, token, self._view.figures()])

    def answered(self, number: int, token: int, figures: dict[str, Any] | None) -> None:
        """The answer of another process, or of the parent about those that ended."""
        question = self._open.get(token)
        if question is not None and number in question.left:
            question.left.remove(number)
            if figures is not None:
                question.found[number] = figures
            if not question.left:
                self._close(token)

    def _over(self, token: int) -> None:
        """The time is over."""
        question = self._open[token]
        late = sorted(question.left - {ENDED})
        if question.late or not late:
            self._close(token)
            return
        question.late = True
        question.left = {ENDED}
        question.timeout = self._reactor.callLater(TIMEOUT_S, self._over, token)
        self._send(["late", token, late])

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
