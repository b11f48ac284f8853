"""Answers that are kept for a moment."""

from __future__ import annotations

from typing import Any, cast

import attrs
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.protocols.http.api.base.kept import KeptAnswers


@attrs.define
class _Host:
    """What is asked of a node. ``others``: to which it is connected."""

    reactor: Clock = attrs.Factory(Clock)
    others: frozenset[str] = frozenset()

    @property
    def view(self) -> _Host:
        return self

    def connected(self) -> frozenset[str]:
        return self.others


@attrs.define
class _Exchange:
    """A request at it."""

    host: _Host


class KeptTests(SynchronousTestCase):
    """Several requests for the same."""

    def setUp(self) -> None:
        self.host = _Host()
        self.kept: KeptAnswers[str] = KeptAnswers(2.0, 2)
        self.asked: list[Deferred[str]] = []

    def get(self, key: str = "key") -> Deferred[str]:
        """A request; what it asks the nodes is in ``asked``, if it does."""

        async def made() -> str:
            self.asked.append(Deferred())
            return await self.asked[-1]

        exchange = cast(Any, _Exchange(self.host))
        return Deferred.fromCoroutine(self.kept.get(exchange, key, made))

    def test_kept(self) -> None:
        """For some seconds nobody is asked again; then somebody is."""
        first = self.get()
        self.asked[0].callback("1")
        self.host.reactor.advance(1.9)
        self.assertEqual(["1", "1"], [self.successResultOf(one) for one in (first, self.get())])
        self.host.reactor.advance(0.1)
        self.assertNoResult(self.get())
        self.assertEqual(2, len(self.asked))

    def test_meanwhile(self) -> None:
        """Pages that ask at the same time cost no more than one."""
        all_three = [self.get() for _ in range(3)]
        self.asked[0].callback("1")
        self.assertEqual(["1"] * 3, [self.successResultOf(one) for one in all_three])
        self.assertEqual(1, len(self.asked))

    def test_client_gone(self) -> None:
        """The client whose request is answered, or one that waits for that, goes away: all others
        get their answer."""
        first, second, third = [self.get() for _ in range(3)]
        second.cancel()
        self.failureResultOf(second, CancelledError)
        first.cancel()
        self.failureResultOf(first, CancelledError)
        self.asked[1].callback("2")
        self.assertEqual("2", self.successResultOf(third))

    def test_error(self) -> None:
        """An error is nobody's answer but that of the request that met it."""
        first, second = self.get(), self.get()
        self.asked[0].errback(LookupError("planted"))
        self.failureResultOf(first, LookupError)
        self.asked[1].callback("2")
        self.assertEqual("2", self.successResultOf(second))

    def test_lost_connection(self) -> None:
        """A node was lost, also while it was asked: no page shows its figures any more."""
        self.host.others = frozenset(["b"])
        self.get()
        self.host.others = frozenset()
        self.asked[0].callback("with b")
        second = self.get()
        self.asked[1].callback("without b")
        self.assertEqual("without b", self.successResultOf(second))

    def test_bounded(self) -> None:
        """Whatever is asked for, little is kept: what was made longest ago is forgotten."""
        for key in ("a", "b", "c"):
            self.get(key)
            self.asked[-1].callback(key)
        self.get("c")
        self.assertEqual(3, len(self.asked))
        self.get("a")
        self.assertEqual(4, len(self.asked))
