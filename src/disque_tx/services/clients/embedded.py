"""The node's operations as Deferreds, for plugin protocols, for programs that embed a node, and
for tests. No bytes are encoded on the way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from twisted.application.service import Service
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from disque_tx.commands.base.values import Error, ValueReplies
from disque_tx.core.base.client import Client
from disque_tx.errors import CommandError

if TYPE_CHECKING:
    from disque_tx.services.turns.runtime import Runtime


class _Call:
    """One operation under way: a client row whose sink keeps values."""

    def __init__(self, service: NodeService, client: Client) -> None:
        self._service = service
        self.client = client
        self.result: Deferred[Any] = Deferred(self._cancelled)

    def flush(self) -> None:
        """The reply is complete, or the client was closed."""
        replies = self.client.replies  # HELLO replaces them
        assert isinstance(replies, ValueReplies)
        values = replies.values
        if values:
            value = values[0]
            self._service.ended(self.client)
            if isinstance(value, Error):
                code, _, text = value.line.decode("latin-1").partition(" ")
                self.result.errback(CommandError(code, text))
            else:
                self.result.callback(value)

    def _cancelled(self, _result: Deferred[Any]) -> None:
        self._service.ended(self.client)


class NodeService(Service):
    """Operations on the node of ``runtime``."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._last_id = 0

    def call(self, *words: bytes) -> Deferred[Any]:
        """Run any command of the client protocol; fires with its reply as a value.

        Status replies are ``Status``, strings ``bytes``, numbers ``int``, nulls ``None``, arrays
        lists. Fails with ``CommandError`` for an error reply. A blocked call may be cancelled: no
        job is lost by it.
        """
        return self.call_from(b"embedded", *words)

    def call_from(
        self, addr: bytes, *words: bytes, name: bytes = b"", reader: bool = False
    ) -> Deferred[Any]:
        """The same for a client at this address, as MONITOR shows it. ``name``: of the client.
        ``reader``: it may read only."""
        runtime = self._runtime
        # Negative IDs: these rows are not connections, and CLIENT LIST does not show them.
        self._last_id -= 1
        client = Client(self._last_id, ValueReplies(), addr, runtime.node.now_ms)
        client.authenticated = True
        client.name, client.reader = name, reader
        call = _Call(self, client)
        runtime.calls[client.id] = call
        with runtime.turn() as node:
            try:
                runtime.dispatcher.run(client, list(words))
            except Exception:
                # A fault of this program: the caller gets it, and the turn ends as always.
                self.ended(client)
                call.result.errback(Failure())
            node.outbox.touch(client)
        return call.result

    def ended(self, client: Client) -> None:
        """The call is over: nothing is held for it any more."""
        if self._runtime.calls.pop(client.id, None) is not None:
            self._runtime.node.client_gone(client)
