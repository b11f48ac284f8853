"""What happened at a node is kept over restarts: its history and its last actions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from twisted.application.service import Service
from twisted.internet.defer import Deferred
from twisted.internet.task import LoopingCall
from twisted.python.failure import Failure

from disque_tx import __version__
from disque_tx.commands.base.actions import START, Action
from disque_tx.services.node.historyfile import HistoryFile

if TYPE_CHECKING:
    from disque_tx.services.machine.platform import Platform
    from disque_tx.services.turns.runtime import Runtime

#: Between two times at which the file is written, if there is anything new.
SAVED_S: Final = 60.0


class Keeping(Service):
    """Reads the file when the node begins to serve, and writes it every minute, in a thread, and at
    the stop."""

    name = "keeping"

    def __init__(self, runtime: Runtime, platform: Platform, nodes_path: str) -> None:
        self._runtime = runtime
        self._in_thread = platform.in_thread
        self._file = HistoryFile(runtime.server, platform.files, nodes_path, platform.log)
        self._loop = LoopingCall(self._save)
        self._loop.clock = platform.reactor
        self._writing: Deferred[None] | None = None

    def startService(self) -> None:
        """Go on with what is in the file."""
        super().startService()
        with self._runtime.turn() as node:
            self._file.load()
            what = f"disque-tx {__version__} started".encode()
            self._runtime.server.actions.add(Action(node.wall_us // 1000, START, b"", what))
        self._loop.start(SAVED_S, now=False)

    def stopService(self) -> Deferred[None] | None:
        """Write what is new, once no thread writes any more."""
        super().stopService()
        if self._loop.running:
            self._loop.stop()
        if self._writing is None:
            self._write()
        else:
            self._writing.addBoth(lambda _result: self._write())
        return self._writing

    def _write(self) -> None:
        try:
            self._file.snapshot()()
        except OSError as error:
            self._file.failed(error)

    def _save(self) -> Deferred[None] | None:
        if not self._file.is_unsaved():
            return None
        writing = self._in_thread(self._file.snapshot()).addErrback(self._failed)
        self._writing = writing
        return writing.addBoth(self._written)

    def _written(self, _result: object) -> None:
        self._writing = None

    def _failed(self, failure: Failure) -> None:
        failure.trap(OSError)
        assert isinstance(failure.value, OSError)
        self._file.failed(failure.value)
