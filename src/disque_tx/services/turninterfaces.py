"""The seams between a node and its reactor, each with a double for tests."""
# ruff: noqa: N805  the methods of an interface are written without self

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from zope.interface import Attribute, Interface

if TYPE_CHECKING:
    import select

    from disque_tx.services.pump import Pump
    from disque_tx.services.rounds import Rounds


class IClock(Interface):
    """The two clocks of a node."""

    def steady_ms() -> int:
        """Milliseconds of a clock that never jumps; its zero means nothing."""

    def wall_us() -> int:
        """Microseconds since 1970, as the system believes."""


class ITurn(Interface):
    """A batch of input: it is executed as a whole, and answered afterwards."""

    pump: Pump = Attribute("What moves requests in and replies out.")

    def turn() -> AbstractContextManager[object]:
        """The block in which input is executed; at its end the log is written, then replies are
        sent."""


class IRoundsReactor(Interface):
    """A reactor that runs the rounds of a node itself (``services/net/reactor.py``)."""

    def attach(rounds: Rounds, poller: select.epoll) -> bool:
        """From now on wait in ``poller``, and run these rounds; ``False`` when it runs those of
        another node already."""

    def detach(rounds: Rounds) -> None:
        """Return to the poll loop of the reactor."""
