"""``twistd disque --config <file>``: the same services under Twisted's own daemon program."""

from __future__ import annotations

import os
import sys
from typing import Any

from twisted.application.service import IService, IServiceMaker
from twisted.internet.defer import Deferred
from twisted.plugin import IPlugin
from twisted.python import usage
from zope.interface import implementer

from disque_tx import config
from disque_tx.commands.table import standard_registry
from disque_tx.core.policies.policies import checked_pairs
from disque_tx.errors import ConfigError
from disque_tx.services.node.root import NodeRoot, prepare
from disque_tx.services.processes.settings import processes
from disque_tx.text.quoting import split


class Options(usage.Options):
    """Words of the command line behind ``twistd disque``."""

    optParameters = [
        ["config", "c", "", "Path of the configuration file."],
    ]

    def opt_set(self, directive: str) -> None:
        """A directive with its value, as in '--set "port 7712"', with quotes as in the file; may be
        given often, and overrides the file."""
        words = split(os.fsencode(directive))
        if not words:
            raise usage.UsageError(f"--set '{directive}': this is not a directive with a value")
        self.setdefault("directives", []).append(list(map(os.fsdecode, words)))

    def words(self) -> list[str]:
        """The arguments that ``disque-server`` would have."""
        words = [self["config"]] if self["config"] else []
        for directive in self.get("directives", []):
            name, *values = directive
            words += [f"--{name}", *values]
        return words


class _StoppedByTwistd(NodeRoot):
    """A node that gives its jobs away when twistd is stopped, if it is to."""

    def stopService(self) -> Deferred[Any]:
        """twistd stops its services while the reactor goes on."""
        empty: Deferred[None] = Deferred()
        if self._stop_asked or not self.evacuation.begin(lambda: empty.callback(None)):
            return super().stopService()
        return empty.addCallback(lambda _: NodeRoot.stopService(self))


@implementer(IServiceMaker, IPlugin)
class DisqueServiceMaker:
    """Makes the node's service for ``twistd``."""

    tapname = "disque"
    description = "The distributed job queue Disque."
    options = Options

    def makeService(self, options: Any) -> IService:
        """The node; its signals, its pid file and its log are twistd's business."""
        # Not before: this module is imported while twistd still chooses the reactor.
        from twisted.internet import reactor

        try:
            settings = config.load(
                options.words(),
                sys.stdin.buffer.read,
                commands=standard_registry().by_name,
                policy=checked_pairs,
            )
            if processes(settings) > 1:
                raise ConfigError("twistd runs one process: use disque-server for 'processes'.")
            log = prepare(settings)
            return _StoppedByTwistd(settings, log, reactor)
        except ConfigError as error:
            raise SystemExit(f"{error}") from error
