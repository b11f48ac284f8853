"""The seams of the server: small interfaces, each with a double for tests and the simulator."""
# ruff: noqa: N805  the methods of an interface are written without self

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from twisted.internet.interfaces import IProtocolFactory
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
    """A reactor that runs the rounds of a node itself (``net/reactor.py``)."""

    def attach(rounds: Rounds, poller: select.epoll) -> bool:
        """From now on wait in ``poller``, and run these rounds; ``False`` when it runs those of
        another node already."""

    def detach(rounds: Rounds) -> None:
        """Wait as any other reactor again."""


class IHost(Interface):
    """The node, as the protocols of its listeners see it."""

    settings = Attribute("The configuration in force.")
    log = Attribute("The log of the daemon: ``notice(text)``, ``warning(text)``, ...")
    node_service = Attribute("``call(*words)``: any command of the node, as a Deferred.")

    def disque_clients() -> IProtocolFactory:
        """A factory of the protocol of Disque's clients."""


class IClientProtocol(Interface):
    """A protocol that listeners can serve; found by ``twisted.plugin.getPlugins``.

    The directive ``listen <name> <endpoint>`` puts it to use.
    """

    name: str = Attribute("The word in the ``listen`` directive.")
    description: str = Attribute("One line for people.")

    def factory(host: IHost) -> IProtocolFactory:
        """A factory of protocols for the node of ``host``; ``host.node_service`` has the node's
        operations as Deferreds."""
