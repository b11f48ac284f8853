"""The node's operations as Deferreds, for plugin protocols, for programs that embed a node, and
for tests. No bytes are encoded on the way."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from twisted.application.service import Service
from twisted.internet.defer import CancelledError, Deferred
from twisted.python.failure import Failure

from disque_tx.commands.base.values import Error, ValueReplies
from disque_tx.core.base.client import Client
from disque_tx.errors import CommandError

if TYPE_CHECKING:
    from disque_tx.services.turns.runtime import Runtime


class Call(Deferred[Any]):
    """One operation, which fires with its reply as a value. ``client``: its row, whose sink keeps
    values; ``None`` until the node executes it."""

    def __init__(self, service: NodeService) -> None:
        super().__init__(Call._cancelled)
        self.client: Client | None = None
        self._service = service

    def flush(self) -> None:
        """The reply is complete, or the client was closed."""
        assert self.client is not None
        replies = self.client.replies  # HELLO replaces them
        assert isinstance(replies, ValueReplies)
        if replies.values:
            value = replies.values[0]
            self._service.ended(self.client)
            if isinstance(value, Error):
                code, _, text = value.line.decode("latin-1").partition(" ")
                self.answered(Failure(CommandError(code, text)))
            else:
                self.answered(value)

    def answered(self, result: object) -> None:
        """Fire with a value or a failure."""
        self.callback(result)

    @staticmethod
    def _cancelled(call: Deferred[Any]) -> None:
        assert isinstance(call, Call)
        if call.client is not None:
            call._service.ended(call.client)
        call.answered(Failure(CancelledError()))


class NodeService(Service):
    """Operations on the node of ``runtime``."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self._last_id = 0
        self._held: deque[Callable[[], None]] = deque()
        runtime.on_resume.append(self._resume)

    def call(self, *words: bytes) -> Deferred[Any]:
        """Run any command of the client protocol; fires with its reply as a value.

        Status replies are ``Status``, strings ``bytes``, numbers ``int``, nulls ``None``, arrays
        lists. Fails with ``CommandError`` for an error reply. A blocked call may be cancelled: no
        job is lost by it.
        """
        call = Call(self)
        self.run(call, b"embedded", words)
        return call

    def run(
        self,
        call: Call,
        addr: bytes,
        words: Sequence[bytes],
        name: bytes = b"",
        reader: bool = False,
    ) -> None:
        """Run a command for a client at this address, as MONITOR shows it. ``name``: of the client.
        ``reader``: it may read only."""
        runtime = self.runtime
        # Negative IDs: these rows are not connections, and CLIENT LIST does not show them.
        self._last_id -= 1
        client = Client(self._last_id, ValueReplies(), addr, runtime.node.now_ms)
        client.authenticated = True
        client.name, client.reader = name, reader
        call.client = client
        runtime.calls[client.id] = call
        with runtime.turn() as node:
            try:
                runtime.dispatcher.run(client, list(words))
            except Exception:
                # A fault of this program: the caller gets it, and the turn ends as always.
                self.ended(client)
                call.answered(Failure())
            node.outbox.touch(client)

    def ended(self, client: Client) -> None:
        """The call is over: nothing is held for it any more."""
        if self.runtime.calls.pop(client.id, None) is not None:
            self.runtime.node.client_gone(client)

    # -- CLIENT PAUSE ------------------------------------------------------------------------

    def after_pause(self, work: Callable[[], None]) -> None:
        """Do this now, or while all clients are paused, when the pause is over, in order."""
        if self._held or self.runtime.server.paused_until_ms:
            self._held.append(work)
        else:
            work()

    def _resume(self) -> None:
        """The pause is over: do what was held, a turn's worth at a time."""
        runtime = self.runtime
        while self._held and not runtime.server.paused_until_ms:
            with runtime.turn():
                if runtime.pump.is_turn_over():
                    break
                self._held.popleft()()
        if self._held and not runtime.server.paused_until_ms:
            runtime.call_soon(self._resume)
