"""Clients that come by the protocols of plugins: rows in the node's table of clients."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Final

from twisted.internet.address import IPv4Address, IPv6Address
from twisted.internet.defer import CancelledError, Deferred, fail
from twisted.internet.interfaces import IAddress
from twisted.python.failure import Failure
from zope.interface import implementer

from disque_tx.commands.base.values import ValueReplies
from disque_tx.commands.server.clients import check_name
from disque_tx.core.base.client import Client
from disque_tx.errors import CommandError
from disque_tx.plugins.interfaces import IConnection, Role
from disque_tx.services.clients.protocol import describe
from disque_tx.services.clients.roles import Passwords, check_role
from disque_tx.services.machine.guesses import network_of

if TYPE_CHECKING:
    from disque_tx.services.clients.admission import Admission
    from disque_tx.services.clients.embedded import NodeService
    from disque_tx.services.clients.guard import Guard
    from disque_tx.services.turns.runtime import Runtime

#: Calls of one connection that have no answer yet; a client that causes more of them is cut off.
CALLS_MAX: Final = 1_000


class GuestCall(Deferred[Any]):
    """A call of a plugin, from when it is made until it is answered. An error that the plugin
    leaves in it is a failure of the plugin."""

    def __init__(self, guest: Guest, role: Role, words: tuple[bytes, ...]) -> None:
        super().__init__(self._cancelled)
        self._guest = guest
        self._role = role
        self._words = words
        self._under_way: Deferred[Any] | None = None

    def begin(self) -> None:
        """Let the node execute it."""
        if self.called:
            return  # it was cancelled while it was held
        self._under_way = self._guest.execute(self._role, self._words)
        self._under_way.addBoth(self._answered)

    def _answered(self, result: object) -> None:
        self._guest.over(self, result)

    @staticmethod
    def _cancelled(call: Deferred[Any]) -> None:
        assert isinstance(call, GuestCall)
        if call._under_way is not None:
            call._under_way.cancel()
        else:
            call._guest.over(call, Failure(CancelledError()))

    def _runCallbacks(self) -> None:
        super()._runCallbacks()
        result = getattr(self, "result", None)
        if isinstance(result, Failure):
            # Its frames hold this object, which would be deleted much later.
            result.cleanFailure()

    def __del__(self) -> None:
        result = getattr(self, "result", None)
        if isinstance(result, Failure):
            self.addErrback(self._guest.left)


def network_of_peer(peer: IAddress) -> str:
    """The network of a client at this address (:func:`guesses.network_of`)."""
    return network_of(peer.host if isinstance(peer, IPv4Address | IPv6Address) else "")


@implementer(IConnection)
class Guest:
    """One client. ``client``: its row. ``network``: where it comes from. Each of its calls has a
    row of its own, because they may block at the same time."""

    def __init__(self, guests: Guests, client: Client, transport: Any, guard: Guard) -> None:
        self._guests = guests
        self._transport = transport
        self._guard = guard
        self._peer: IAddress = transport.getPeer()
        self._calls: set[GuestCall] = set()
        self._open = True
        self._stats = guests.runtime.server.stats.protocol(guard.name)
        self._stats.connected += 1
        self._stats.connections += 1
        self.client = client
        self.network = network_of_peer(self._peer)

    def authenticate(self, password: bytes | None) -> Role:
        """What a client with this password may do."""
        return self._guests.passwords.role(password, self.network)

    # -- calls -------------------------------------------------------------------------------

    def call(self, role: Role, *words: bytes) -> Deferred[Any]:
        """Run a command, if the role allows it."""
        try:
            check_role(role, words)
        except CommandError as error:
            self._stats.errors += 1
            self._guests.runtime.server.stats.errors += 1
            return fail(error)
        if not self._open:
            return fail(CommandError("ERR", "The connection of this client has ended."))
        if len(self._calls) >= CALLS_MAX:
            self._cut_off(f"has {CALLS_MAX} calls without an answer; its connection is closed")
            return fail(CommandError("TRYLATER", f"More than {CALLS_MAX} calls are not answered."))
        call = GuestCall(self, role, words)
        self._calls.add(call)
        self._guests.begin(call)
        return call

    def execute(self, role: Role, words: tuple[bytes, ...]) -> Deferred[Any]:
        """Let the node execute a command of this client now."""
        stats, mine = self._guests.runtime.server.stats, self._stats
        self.client.last_command = words[0].lower()
        commands, errors = stats.commands_processed, stats.errors
        call = self._guests.service.call_from
        result = self._guard.elsewhere(
            lambda: call(
                self.client.addr, *words, name=self.client.name, reader=role is Role.READER
            )
        )
        mine.commands += stats.commands_processed - commands
        mine.errors += stats.errors - errors
        return result

    def over(self, call: GuestCall, result: object) -> None:
        """A call is answered, or was cancelled."""
        self._calls.discard(call)
        self._guard.run("what it does with an answer", call.callback, result)

    def left(self, failure: Failure) -> None:
        """The plugin did nothing about an error, of the node or of its own."""
        if not failure.check(CancelledError):
            # Called when an object is deleted, which may be anywhere.
            self._guests.runtime.call_soon(lambda: self._fail(failure))

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

    def rename(self, name: bytes) -> None:
        """The name in CLIENT LIST."""
        check_name(name)
        self.client.name = name

    def received(self, size: int) -> None:
        """Bytes arrived."""
        runtime = self._guests.runtime
        self.client.seen_ms = runtime.node.now_ms
        runtime.server.stats.net_input_bytes += size
        self._stats.input_bytes += size

    def sent(self, size: int) -> None:
        """Bytes were written."""
        self._guests.runtime.server.stats.net_output_bytes += size
        self._stats.output_bytes += size

    def closed(self) -> None:
        """The transport is gone."""
        if self._guests.forget(self):
            self._open = False
            self._stats.connected -= 1
            for call in list(self._calls):
                call.cancel()

    def abandoned(self) -> None:
        """The transport is gone, and the plugin should have closed this."""
        if self.client.id in self._guests.runtime.calls:
            self._guard.ended(self._peer, "is gone, and the plugin did not call closed()")
            self.closed()

    # -- for the pump ------------------------------------------------------------------------

    def flush(self) -> None:
        """The client is to be closed."""
        if self.client.doomed:
            self._transport.abortConnection()
        elif self.client.closing:
            self._transport.loseConnection()

    def output_bytes(self) -> int:
        """Bytes that wait for the client to read."""
        unsent = getattr(self._transport, "unsent_bytes", None)
        return unsent() if unsent is not None else 0


class Guests:
    """All clients of plugins."""

    def __init__(
        self,
        runtime: Runtime,
        admission: Admission,
        service: NodeService,
        passwords: Passwords,
    ) -> None:
        self.runtime = runtime
        self.service = service
        self.passwords = passwords
        self._admission = admission
        self._held: deque[GuestCall] = deque()
        runtime.on_resume.append(self._resume)

    # -- CLIENT PAUSE ------------------------------------------------------------------------

    def begin(self, call: GuestCall) -> None:
        """Execute a call, or hold it while all clients are paused."""
        if self._held or self.runtime.server.paused_until_ms:
            self._held.append(call)
        else:
            call.begin()

    def _resume(self) -> None:
        """The pause is over: execute what was held, a turn's worth at a time."""
        runtime = self.runtime
        while self._held and not runtime.server.paused_until_ms:
            with runtime.turn():
                if runtime.pump.is_turn_over():
                    break
                self._held.popleft().begin()
        if self._held and not runtime.server.paused_until_ms:
            runtime.call_soon(self._resume)

    # -- coming and going --------------------------------------------------------------------

    def admit(self, transport: Any, protocol: str, guard: Guard) -> Guest:
        """Register a client, or raise the ``CommandError`` of its refusal. ``protocol``: its name
        in CLIENT LIST. ``guard``: of its plugin."""
        peer, host = transport.getPeer(), transport.getHost()
        refusal = self._admission.refuse(peer, host)
        if refusal:
            code, _, text = refusal.decode().partition(" ")
            raise CommandError(code, text)
        addr, monitor_addr, unix = describe(peer, host)
        client_id = self._admission.next_id()
        client = Client(client_id, ValueReplies(), addr, self.runtime.node.now_ms)
        client.monitor_addr = monitor_addr
        client.unix = unix
        client.fd = getattr(transport, "fd", -1)
        client.name = protocol.encode()
        guest = Guest(self, client, transport, guard)
        self._admission.enter(client)
        self.runtime.calls[client.id] = guest
        return guest

    def forget(self, guest: Guest) -> bool:
        """The client is gone; ``False`` when that was known."""
        if self.runtime.calls.pop(guest.client.id, None) is None:
            return False
        self._admission.dismiss(guest.client)
        return True
