"""The protocols that listeners can use."""

from __future__ import annotations

import sys
from pathlib import Path

from twisted.internet.address import UNIXAddress
from twisted.internet.interfaces import IProtocolFactory
from twisted.plugin import IPlugin
from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

import twisted.plugins
from disque_tx.errors import ConfigError
from disque_tx.plugins.interfaces import IClientProtocol
from disque_tx.services.clients.discovery import RespPlugin, client_protocol
from disque_tx.services.clients.listeners import server_endpoint
from tests.services.rootbench import RootCase

_GOPHER = """\
from disque_tx.services.clients.discovery import RespPlugin
gopher = RespPlugin("gopher", "not really")
"""


class FindTests(SynchronousTestCase):
    """Finding a protocol by its name."""

    def test_ours(self) -> None:
        """RESP is always available."""
        plugin = client_protocol("resp")
        self.assertEqual("resp", plugin.name)
        verifyObject(IClientProtocol, plugin)

    def test_plugin(self) -> None:
        """It is a plugin like third-party ones."""
        verifyObject(IPlugin, RespPlugin())
        self.assertIn("RESP", RespPlugin().description)

    def test_nothing_is_written(self) -> None:
        """Looking for protocols and endpoints writes nothing among installed files."""
        folder = Path(self.mktemp()) / "twisted" / "plugins"
        folder.mkdir(parents=True)
        (folder / "gopher_plugin.py").write_text(_GOPHER)
        (folder / "broken_plugin.py").write_text("1 / 0")
        self.patch(twisted.plugins, "__path__", [str(folder), *twisted.plugins.__path__])
        self.patch(sys, "dont_write_bytecode", True)
        self.assertEqual("gopher", client_protocol("gopher").name)
        self.assertRaises(ValueError, server_endpoint, None, "nonsense:1")
        names = sorted(path.name for path in folder.iterdir())
        self.assertEqual(["broken_plugin.py", "gopher_plugin.py"], names)
        self.assertTrue(self.flushLoggedErrors(ZeroDivisionError))

    def test_unknown(self) -> None:
        """The error for an unknown protocol lists the installed ones."""
        with self.assertRaisesRegex(ConfigError, r"listen gopher: no such protocol.*\bresp\b"):
            client_protocol("gopher")


class FactoryTests(RootCase):
    """The factory of a protocol."""

    def test_factory(self) -> None:
        """The factory serves the node it was made for."""
        root = self.started()
        factory = client_protocol("resp").factory(root.plugin_host)
        verifyObject(IProtocolFactory, factory)
        address = UNIXAddress(None)
        self.assertIsNot(factory.buildProtocol(address), factory.buildProtocol(address))
