"""What the ``listen`` directive finds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

import attrs
from twisted.internet.interfaces import IProtocolFactory
from twisted.plugin import IPlugin
from zope.interface import implementer

from disque_tx.plugins import IClientProtocol, IHost

if TYPE_CHECKING:
    from disque_tx.protocols.beanstalk.tubes import Tubes

#: The tubes of each node, which all its listeners share.
_TUBES: Final[WeakKeyDictionary[IHost, Tubes]] = WeakKeyDictionary()
_REFUSAL: Final = b"INTERNAL_ERROR\r\n"


@implementer(IPlugin, IClientProtocol)
@attrs.frozen
class BeanstalkPlugin:
    """The protocol ``beanstalk``. What it needs is imported when it is used."""

    name: str = "beanstalk"
    description: str = "beanstalkd's protocol: tubes are queues"

    def factory(self, host: IHost) -> IProtocolFactory:
        """A factory of beanstalk connections."""
        from disque_tx.protocols.beanstalk.connection import BeanstalkConnection

        tubes = tubes_of(host)
        factory: IProtocolFactory = host.direct_clients(
            self.name, lambda _node: BeanstalkConnection(tubes), _REFUSAL
        )
        return factory


def tubes_of(host: IHost) -> Tubes:
    """The tubes of a node."""
    from disque_tx.protocols.beanstalk.tubes import Tubes

    tubes = _TUBES.get(host)
    if tubes is None:
        node, later = host.direct_node, host.reactor.callLater
        tubes = Tubes(node, host.settings, lambda s, work: later(s, host.in_turn, work))
        _TUBES[host] = tubes
    return tubes
