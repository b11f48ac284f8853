"""What the ``listen`` directive finds."""

from __future__ import annotations

import attrs
from twisted.internet.interfaces import IProtocolFactory
from twisted.plugin import IPlugin
from zope.interface import implementer

from disque_tx.plugins import IClientProtocol, IHost


@implementer(IPlugin, IClientProtocol)
@attrs.frozen
class HttpPlugin:
    """The protocol ``http``. What it needs is imported when it is used."""

    name: str = "http"
    description: str = "HTTP: an API in JSON, a console, health and metrics"

    def factory(self, host: IHost) -> IProtocolFactory:
        """A factory of HTTP connections."""
        from disque_tx.protocols.http.site import standard_factory

        factory: IProtocolFactory = standard_factory(host)
        return factory
