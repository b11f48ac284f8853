"""``twistd disque``."""

from __future__ import annotations

import os
from pathlib import Path

from twisted.application.service import IServiceMaker
from twisted.plugin import IPlugin
from twisted.python.usage import UsageError
from zope.interface.verify import verifyObject

from disque_tx.services.node.root import NodeRoot
from disque_tx.services.tap import DisqueServiceMaker, Options
from tests.services.rootbench import RootCase


class OptionsTests(RootCase):
    """The command line."""

    def test_words(self) -> None:
        """The options are those of disque-server."""
        options = Options()
        options.parseOptions(
            ["--config", "my.conf", "--set", "port 7712", "--set", "bind ::1 127.0.0.1"]
        )
        self.assertEqual(
            ["my.conf", "--port", "7712", "--bind", "::1", "127.0.0.1"], options.words()
        )

    def test_quotes(self) -> None:
        """A value may contain blanks and quotes, as in the file."""
        options = Options()
        options.parseOptions(["--set", 'requirepass "two words"', "--set", "logfile 'a b'"])
        self.assertEqual(["--requirepass", "two words", "--logfile", "a b"], options.words())

    def test_unbalanced(self) -> None:
        """A directive that cannot be parsed, or is empty, is refused with an error that shows
        it."""
        for text in ('requirepass "two', "", "  "):
            with self.assertRaisesRegex(UsageError, "not a directive with a value"):
                Options().parseOptions(["--set", text])

    def test_nothing(self) -> None:
        """Without options the defaults apply."""
        options = Options()
        options.parseOptions([])
        self.assertEqual([], options.words())

    def test_unknown(self) -> None:
        """Directives are not options of their own: an unknown option is refused."""
        self.assertRaises(UsageError, Options().parseOptions, ["--port", "7712"])


class MakerTests(RootCase):
    """The service that the plugin creates."""

    def make_service(self, *words: str) -> object:
        """The service for a command line; the working directory is this test's folder meanwhile."""
        self.addCleanup(os.chdir, os.getcwd())
        options = Options()
        options.parseOptions(["--set", f"dir {self.folder}", "--set", "logfile log", *words])
        return DisqueServiceMaker().makeService(options)

    def test_interfaces(self) -> None:
        """twistd finds the plugin's interfaces."""
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

    def test_several_processes(self) -> None:
        """twistd runs one process, and refuses to run one where several were asked for."""
        with self.assertRaises(SystemExit) as caught:
            self.make_service("--set", "processes 2")
        self.assertIn("use disque-server", str(caught.exception))

    def test_mistake(self) -> None:
        """A mistake in the configuration ends twistd with the text that explains it."""
        with self.assertRaises(SystemExit) as caught:
            self.make_service("--set", "port nonsense")
        self.assertIn("port", str(caught.exception))
