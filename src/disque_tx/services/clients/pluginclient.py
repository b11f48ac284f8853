"""Clients that come by the protocols of plugins: their rows in the table of clients, and their
calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from twisted.internet.address import IPv4Address, IPv6Address
from twisted.internet.defer import CancelledError, Deferred, fail
from twisted.internet.interfaces import IAddress
from twisted.python.failure import Failure
from zope.interface import implementer

from disque_tx.commands.base.audit import acted
from disque_tx.commands.base.values import ValueReplies
from disque_tx.commands.server.clients import check_name
from disque_tx.core.base.client import Client
from disque_tx.errors import CommandError
from disque_tx.plugins.interfaces import IConnection
from disque_tx.plugins.values import Role
from disque_tx.services.clients.embedded import Call, NodeService
from disque_tx.services.clients.protocol import describe
from disque_tx.services.clients.roles import Passwords, check_role
from disque_tx.services.machine.guesses import network_of

if TYPE_CHECKING:
    from disque_tx.services.clients.admission import Admission
    from disque_tx.services.clients.guard import Guard

#: Calls of one connection that have no answer yet; a client that causes more of them is cut off.
CALLS_MAX: Final = 1_000


class PluginCall(Call):
    """A call of a plugin, from when it is made until it is answered. An error that the plugin
    leaves in it is a failure of the plugin."""

    def __init__(
        self, service: NodeService, owner: PluginClient, role: Role, words: tuple[bytes, ...]
    ) -> None:
        super().__init__(service)
        self._owner = owner
        self._role = role
        self._words = words

    def begin(self) -> None:
        """Let the node execute it, unless it was cancelled while it was held."""
        if not self.called:
            self._owner.execute(self, self._role, self._words)

    def answered(self, result: object) -> None:
        """Tell the plugin."""
        self._owner.over(self, result)

    def _runCallbacks(self) -> None:
        super()._runCallbacks()
        result = getattr(self, "result", None)
        if isinstance(result, Failure):
            # Its frames hold this object, which would be deleted much later.
            result.cleanFailure()

    def __del__(self) -> None:
        result = getattr(self, "result", None)
        if isinstance(result, Failure):
            self.addErrback(self._owner.left)


def network_of_peer(peer: IAddress) -> str:
    """The network of a client at this address (:func:`guesses.network_of`)."""
    return network_of(peer.host if isinstance(peer, IPv4Address | IPv6Address) else "")


@implementer(IConnection)
class PluginClient:
    """One client. ``client``: its row. ``network``: where it comes from. Each of its calls has a
    row of its own, because they may block at the same time."""

    def __init__(
        self,
        service: NodeService,
        admission: Admission,
        passwords: Passwords,
        guard: Guard,
        transport: Any,
        protocol: str,
    ) -> None:
        """Register a client, or raise the ``CommandError`` of its refusal. ``guard``: of its
        plugin. ``protocol``: its name in CLIENT LIST."""
        self._service = service
        self._runtime = service.runtime
        self._admission = admission
        self._passwords = passwords
        self._guard = guard
        self._transport = transport
        self._peer: IAddress = transport.getPeer()
        self._calls: set[PluginCall] = set()
        self._open = True
        self.client = self._admitted(protocol)
        self.network = network_of_peer(self._peer)
        self._stats = self._runtime.server.stats.protocol(guard.name)
        self._stats.connected += 1
        self._stats.connections += 1

    def _admitted(self, protocol: str) -> Client:
        transport, admission = self._transport, self._admission
        peer, host = self._peer, transport.getHost()
        refusal = admission.refuse(peer, host)
        if refusal:
            code, _, text = refusal.decode().partition(" ")
            raise CommandError(code, text)
        addr, monitor_addr, unix = describe(peer, host)
        client = Client(admission.next_id(), ValueReplies(), addr, self._runtime.node.now_ms)
        client.monitor_addr = monitor_addr
        client.unix = unix
        client.fd = getattr(transport, "fd", -1)
        client.name = protocol.encode()
        admission.enter(client)
        self._runtime.calls[client.id] = self
        return client

    def authenticate(self, password: bytes | None) -> Role:
        """What a client with this password may do."""
        return self._passwords.role(password, self.network)

    # -- calls -------------------------------------------------------------------------------

    def call(self, role: Role, *words: bytes) -> Deferred[Any]:
        """Run a command, if the role allows it."""
        try:
            check_role(role, words)
        except CommandError as error:
            self._stats.errors += 1
            self._runtime.server.stats.errors += 1
            return fail(error)
        if not self._open:
            return fail(CommandError("ERR", "The connection of this client has ended."))
        if len(self._calls) >= CALLS_MAX:
            self._cut_off(f"has {CALLS_MAX} calls without an answer; its connection is closed")
            return fail(CommandError("TRYLATER", f"More than {CALLS_MAX} calls are not answered."))
        call = PluginCall(self._service, self, role, words)
        self._calls.add(call)
        self._service.after_pause(call.begin)
        return call

    def execute(self, call: PluginCall, role: Role, words: tuple[bytes, ...]) -> None:
        """Let the node execute a call of this client now."""
        stats, mine = self._runtime.server.stats, self._stats
        self.client.last_command = words[0].lower()
        commands, errors = stats.commands_processed, stats.errors
        run, client, reader = self._service.run, self.client, role is Role.READER
        self._guard.elsewhere(run, call, client.addr, words, client.name, reader)
        mine.commands += stats.commands_processed - commands
        mine.errors += stats.errors - errors

    def over(self, call: PluginCall, result: object) -> None:
        """A call is answered, or was cancelled."""
        self._calls.discard(call)
        self._guard.run("what it does with an answer", call.callback, result)

    def left(self, failure: Failure) -> None:
        """The plugin did nothing about an error, of the node or of its own."""
        if not failure.check(CancelledError):
            # Called when an object is deleted, which may be anywhere.
            self._runtime.call_soon(lambda: self._fail(failure))

    def _fail(self, failure: Failure) -> None:
        if self._open:
            outcome = "the connection is closed"
            self._guard.failed("what it does with an answer", failure, outcome)
            self._open = False
            self._transport.abortConnection()

    def _cut_off(self, why: str) -> None:
        self._guard.ended(self._peer, why)
        self._open = False
        self._transport.abortConnection()

    # -- the connection ----------------------------------------------------------------------

    def acted(self, jobs: int, *words: bytes) -> None:
        """Keep what the client did."""
        acted(self._runtime.server, self.client, list(words), jobs)

    def rename(self, name: bytes) -> None:
        """The name in CLIENT LIST."""
        check_name(name)
        self.client.name = name

    def received(self, size: int) -> None:
        """Bytes arrived."""
        runtime = self._runtime
        self.client.seen_ms = runtime.node.now_ms
        runtime.server.stats.net_input_bytes += size
        self._stats.input_bytes += size

    def sent(self, size: int) -> None:
        """Bytes were written."""
        self._runtime.server.stats.net_output_bytes += size
        self._stats.output_bytes += size

    def closed(self) -> None:
        """The transport is gone."""
        if self._runtime.calls.pop(self.client.id, None) is not None:
            self._admission.dismiss(self.client)
            self._open = False
            self._stats.connected -= 1
            for call in list(self._calls):
                call.cancel()

    def abandoned(self) -> None:
        """The transport is gone, and the plugin should have closed this."""
        if self.client.id in self._runtime.calls:
            self._guard.ended(self._peer, "is gone, and the plugin did not call closed()")
            self.closed()

    # -- for the pump ------------------------------------------------------------------------

    def flush(self) -> None:
        """The client is to be closed."""
        if self.client.abort_now:
            self._transport.abortConnection()
        elif self.client.closing:
            self._transport.loseConnection()

    def output_bytes(self) -> int:
        """Bytes that wait for the client to read."""
        unsent = getattr(self._transport, "unsent_bytes", None)
        return unsent() if unsent is not None else 0
