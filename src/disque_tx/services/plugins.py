"""Protocols that listeners can speak, ours and those of others (DESIGN section 6)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
from twisted.internet.interfaces import IProtocolFactory
from twisted.plugin import IPlugin, getPlugins
from zope.interface import implementer

from disque_tx.errors import ConfigError
from disque_tx.services.clients import RespFactory
from disque_tx.services.interfaces import IClientProtocol

if TYPE_CHECKING:
    from disque_tx.services.root import NodeRoot


@implementer(IPlugin, IClientProtocol)
@attrs.frozen
class RespPlugin:
    """The protocol of Disque's clients."""

    name: str = "resp"
    description: str = "Disque's client protocol, RESP2 and RESP3"

    def factory(self, root: NodeRoot) -> IProtocolFactory:
        """The same protocol as on the main port."""
        return RespFactory(root.runtime, root.admission)


def client_protocol(name: str) -> IClientProtocol:
    """The plugin called ``name``; ``ConfigError`` lists what there is when there is none."""
    # Ours is there even where Twisted does not look for plugins, as in an editable installation.
    plugins: list[IClientProtocol] = [RespPlugin(), *getPlugins(IClientProtocol)]
    found = {plugin.name: plugin for plugin in plugins}
    if name not in found:
        known = ", ".join(sorted(found))
        raise ConfigError(f"listen {name}: no such protocol is installed; there is {known}")
    return found[name]
