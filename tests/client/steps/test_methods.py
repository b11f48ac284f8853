"""Operations are written once, and performed by three kinds of classes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

from twisted.internet.defer import CancelledError, Deferred, fail, succeed
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.client.errors import BadJobId
from disque_tx.client.requests import encoding as requests
from disque_tx.client.requests.encoding import Request
from disque_tx.client.steps.methods import AwaitedMethods, ImmediateMethods, Methods, operation
from disque_tx.client.steps.single import Steps, anywhere
from disque_tx.client.tx.client import TwistedMethods


class Numbers(Methods):
    """Operations on the lengths of queues."""

    @operation
    def nothing(self) -> Steps[int]:
        """0, without a request."""
        yield from ()
        return 0

    @operation
    def one(self, queue: str) -> Steps[int]:
        """One request."""
        return (yield from anywhere(requests.queue_length(queue)))

    @operation
    def total(self, *queues: str) -> Steps[int]:
        """One request for each."""
        lengths = []
        for queue in queues:
            lengths.append((yield from anywhere(requests.queue_length(queue))))
        return sum(lengths)

    @operation
    def either(self, queue: str, other: str) -> Steps[int]:
        """The other queue if this is refused."""
        try:
            return (yield from anywhere(requests.queue_length(queue)))
        except BadJobId:
            return (yield from anywhere(requests.queue_length(other)))


class Session:
    """Answers QLEN. ``wrapped``: makes what the session returns of a function that answers."""

    def __init__(self, wrapped: Callable[[Callable[[], int]], Any]) -> None:
        self.asked: list[str] = []
        self._wrapped = wrapped

    def request(self, request: Request[int]) -> Any:
        """The length of a queue is that of its name."""
        name = bytes(request.words[1]).decode()  # type: ignore[arg-type]
        self.asked.append(name)
        return self._wrapped(lambda: self._answer(name))

    def _answer(self, name: str) -> int:
        if name == "bad":
            raise BadJobId("QLEN", "127.0.0.1:7711", "BADID", "no")
        return len(name)


class ImmediateNumbers(ImmediateMethods, Numbers):
    """Returns numbers."""

    def __init__(self) -> None:
        self._session = Session(lambda answer: answer())


class AwaitedNumbers(AwaitedMethods, Numbers):
    """Returns coroutines."""

    def __init__(self) -> None:
        async def later(answer: Callable[[], int]) -> int:
            await asyncio.sleep(0)
            return answer()

        self._session = Session(later)


class DeferredNumbers(TwistedMethods, Numbers):
    """Returns Deferreds."""

    def __init__(self) -> None:
        self._session = Session(self._later)

    def _later(self, answer: Callable[[], int]) -> Deferred[int]:
        try:
            return succeed(answer())
        except BadJobId as error:
            return fail(error)


class OperationsTests(SynchronousTestCase):
    """The same operations, performed by each kind."""

    def check(self, expected: int, asked: list[str], use: Callable[[Any], Any]) -> None:
        """The result, and the queues that were asked for."""
        immediate, awaited, deferred = ImmediateNumbers(), AwaitedNumbers(), DeferredNumbers()
        self.assertEqual(expected, use(immediate))
        self.assertEqual(expected, asyncio.run(use(awaited)))
        self.assertEqual(expected, self.successResultOf(use(deferred)))
        for numbers in (immediate, awaited, deferred):
            self.assertEqual(asked, numbers._session.asked)

    def test_results(self) -> None:
        """Operations of no, one and many requests return what they are written to return."""
        self.check(0, [], lambda numbers: numbers.nothing())
        self.check(3, ["abc"], lambda numbers: numbers.one("abc"))
        self.check(6, ["a", "bc", "def"], lambda numbers: numbers.total("a", "bc", "def"))

    def test_handled(self) -> None:
        """An operation may go on after an error of a request, in the first one and later."""
        self.check(2, ["bad", "ab"], lambda numbers: numbers.either("bad", "ab"))
        self.check(3, ["abc"], lambda numbers: numbers.either("abc", "bad"))

    def test_unhandled(self) -> None:
        """An error that the operation does not handle is the program's, wherever it occurs."""
        for queues in (("bad",), ("a", "bad", "b")):
            asked = list(queues[: queues.index("bad") + 1])
            immediate, awaited, deferred = ImmediateNumbers(), AwaitedNumbers(), DeferredNumbers()
            self.assertRaises(BadJobId, immediate.total, *queues)
            self.assertRaises(BadJobId, asyncio.run, awaited.total(*queues))
            self.failureResultOf(deferred.total(*queues), BadJobId)
            for numbers in (immediate, awaited, deferred):
                self.assertEqual(asked, numbers._session.asked)

    def test_cancelled(self) -> None:
        """Cancelling the Deferred of an operation cancels the request that it waits for, and makes
        no other."""
        for answered in (0, 1):
            numbers = DeferredNumbers()
            cancelled: list[Deferred[int]] = []
            waiting = [Deferred[int](cancelled.append) for _ in range(3)]
            left = iter(waiting)
            numbers._session = Session(partial(lambda left, _: next(left), left))
            total = numbers.total("a", "b", "c")
            for request in waiting[:answered]:
                request.callback(1)
            total.cancel()
            self.failureResultOf(total, CancelledError)
            self.assertEqual([waiting[answered]], cancelled)
            self.assertEqual(answered + 1, len(numbers._session.asked))
