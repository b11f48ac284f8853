"""``twistd disque``."""

from __future__ import annotations

import os
from pathlib import Path

from twisted.application.service import IServiceMaker
from twisted.plugin import IPlugin
from twisted.python.usage import UsageError
from zope.interface.verify import verifyObject

from disque_tx.services.root import NodeRoot
from disque_tx.services.tap import DisqueServiceMaker, Options
from tests.services.rootbench import RootCase


class OptionsTests(RootCase):
    """Its command line."""

    def test_words(self) -> None:
        """It says the same as disque-server's command line."""
        options = Options()
        options.parseOptions(
            ["--config", "my.conf", "--set", "port 7712", "--set", "bind ::1 127.0.0.1"]
        )
        self.assertEqual(
            ["my.conf", "--port", "7712", "--bind", "::1", "127.0.0.1"], options.words()
        )

    def test_quotes(self) -> None:
        """A value may have blanks and quotes in it, as in the file."""
        options = Options()
        options.parseOptions(["--set", 'requirepass "two words"', "--set", "logfile 'a b'"])
        self.assertEqual(["--requirepass", "two words", "--logfile", "a b"], options.words())

    def test_unbalanced(self) -> None:
        """A directive that cannot be read is shown; nothing at all is none."""
        for text in ('requirepass "two', "", "  "):
            with self.assertRaisesRegex(UsageError, "not a directive with a value"):
                Options().parseOptions(["--set", text])

    def test_nothing(self) -> None:
        """Without options there are the defaults."""
        options = Options()
        options.parseOptions([])
        self.assertEqual([], options.words())

    def test_unknown(self) -> None:
        """An unknown option is no directive."""
        self.assertRaises(UsageError, Options().parseOptions, ["--port", "7712"])


class MakerTests(RootCase):
    """The service it makes."""

    def make_service(self, *words: str) -> object:
        """The service for a command line; the process works in this test's folder meanwhile."""
        self.addCleanup(os.chdir, os.getcwd())
        options = Options()
        options.parseOptions(["--set", f"dir {self.folder}", "--set", "logfile log", *words])
        return DisqueServiceMaker().makeService(options)

    def test_interfaces(self) -> None:
        """twistd finds what it looks for."""
        maker = DisqueServiceMaker()
        verifyObject(IServiceMaker, maker)
        verifyObject(IPlugin, maker)
        self.assertEqual("disque", maker.tapname)

    def test_node(self) -> None:
        """The service is a node with these settings, in its folder."""
        root = self.make_service("--set", "port 7799")
        assert isinstance(root, NodeRoot)
        self.addCleanup(root.stopService)
        self.assertEqual(7799, root.settings.port)
        self.assertEqual(self.folder, Path.cwd())
        self.assertTrue((self.folder / "nodes.conf").exists())

    def test_mistake(self) -> None:
        """A mistake in the configuration ends twistd with the text that explains it."""
        with self.assertRaises(SystemExit) as caught:
            self.make_service("--set", "port nonsense")
        self.assertIn("port", str(caught.exception))
