"""Protocols that listeners can serve, ours and those of plugins."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any, Final

import attrs
from twisted.internet.interfaces import IProtocolFactory
from twisted.logger import Logger
from twisted.plugin import IPlugin
from twisted.python.modules import getModule
from zope.interface import Interface, implementer

from disque_tx.errors import ConfigError
from disque_tx.plugins.interfaces import IClientProtocol, IHost

_log: Final = Logger()
#: Protocols of this package, by name: the module and the class of the plugin. They are there even
#: where Twisted does not look for plugins, as in an editable installation, and loaded when used.
_PACKAGED: Final = {
    "http": ("disque_tx.protocols.http.plugin", "HttpPlugin"),
    "beanstalk": ("disque_tx.protocols.beanstalk.plugin", "BeanstalkPlugin"),
}


@implementer(IPlugin, IClientProtocol)
@attrs.frozen
class RespPlugin:
    """The protocol of Disque's clients."""

    name: str = "resp"
    description: str = "Disque's client protocol, RESP2 and RESP3"

    def factory(self, host: IHost) -> IProtocolFactory:
        """A factory of the protocol of the main port."""
        factory: IProtocolFactory = host.disque_clients()
        return factory


def installed(interface: type[Interface]) -> Iterator[Any]:
    """The plugins of a kind, as ``twisted.plugin.getPlugins`` finds them, which also leaves a cache
    beside them: a daemon writes nothing among installed files."""
    # Before it is imported, only its first folder would be looked at.
    import_module("twisted.plugins")
    for module in getModule("twisted.plugins").iterModules():
        try:
            found = vars(module.load())
        except KeyboardInterrupt:
            raise
        except BaseException:  # a program that calls sys.exit() is no reason to end
            _log.failure("The plugin {name} cannot be used", name=module.name)
            continue
        for plugin in found.values():
            if IPlugin.providedBy(plugin) and interface.providedBy(plugin):
                yield plugin


def client_protocol(name: str) -> IClientProtocol:
    """The plugin called ``name``; ``ConfigError`` lists what there is when there is none."""
    packaged = [getattr(import_module(module), kind)() for module, kind in _PACKAGED.values()]
    plugins: list[IClientProtocol] = [RespPlugin(), *packaged, *installed(IClientProtocol)]
    found = {plugin.name: plugin for plugin in plugins}
    if name not in found:
        known = ", ".join(sorted(found))
        raise ConfigError(f"listen {name}: no such protocol is installed; there is {known}")
    return found[name]
