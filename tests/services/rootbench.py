"""A whole node as its program creates it, on real files, with an in-memory reactor."""

from __future__ import annotations

import gc
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.config.settings import Settings
from disque_tx.services.machine.log import DaemonLog
from disque_tx.services.node.root import NodeRoot
from tests.forwardclock import ForwardReactor
from tests.services.nodebench import drive


class _Threads:
    """Runs work at once instead of in a thread."""

    def callInThreadWithCallback(
        self, on_result: Callable[[bool, Any], None], work: Callable[..., Any], *args: Any
    ) -> None:
        try:
            result = work(*args)
        except Exception:
            on_result(False, Failure())
        else:
            on_result(True, result)


class RootReactor(ForwardReactor):
    """An in-memory reactor without real threads."""

    def getThreadPool(self) -> _Threads:
        return _Threads()

    def callFromThread(self, work: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
        self.callLater(0, work, *args, **kwargs)


class RootCase(SynchronousTestCase):
    """Tests on nodes that listen at a Unix socket in a temporary folder."""

    def setUp(self) -> None:
        self.reactor = RootReactor()
        self.folder = Path(self.mktemp()).resolve()
        self.folder.mkdir()
        self.settings = self.make_settings()
        self.died: list[int] = []
        # The node tunes the garbage collector of its process, which the tests share.
        self.addCleanup(gc.unfreeze)
        self.addCleanup(gc.set_threshold, *gc.get_threshold())

    def make_settings(self, **changes: Any) -> Settings:
        """The settings of a node in this test's folder."""
        settings = Settings(
            dir=str(self.folder),
            port=0,
            maxclients=100,
            cluster_config_file=str(self.folder / "nodes.conf"),
            logfile=str(self.folder / "log"),
            unixsocket=self.path("d.sock"),
        )
        for name, value in changes.items():
            setattr(settings, name, value)
        return settings

    def path(self, name: str) -> str:
        """A file in the folder, with a path short enough for a socket address."""
        return str((self.folder / name).relative_to(Path.cwd()))

    def make(self) -> NodeRoot:
        """A node that is not started."""
        log = DaemonLog("debug", self.settings.logfile)
        return NodeRoot(self.settings, log, self.reactor, self.died.append)

    def started(self) -> NodeRoot:
        """A node that is serving."""
        root = self.make()
        root.privilegedStartService()
        root.startService()
        drive(self.reactor)
        self.addCleanup(self.stopped, root)
        return root

    def stopped(self, root: NodeRoot) -> None:
        """Stop the node if it is still running."""
        if root.running:
            self.successResultOf(root.stopService())

    def dial(self, path: str = "") -> socket.socket:
        """A connected client."""
        client = socket.socket(socket.AF_UNIX)
        self.addCleanup(client.close)
        client.settimeout(5)
        client.connect(path or self.settings.unixsocket)
        drive(self.reactor)
        return client

    def ask(self, client: socket.socket, *requests: str) -> bytes:
        """Send inline requests and read the replies."""
        client.sendall("".join(f"{request}\r\n" for request in requests).encode())
        drive(self.reactor)
        return self.received(client)

    def received(self, client: socket.socket) -> bytes:
        """The bytes received so far."""
        client.setblocking(False)
        try:
            return client.recv(1 << 20)
        except BlockingIOError:
            return b""

    def logged(self) -> str:
        """The text of the log."""
        return Path(self.settings.logfile).read_text()
