"""Clients that come by the protocols of plugins: rows in the node's table of clients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from twisted.internet.defer import Deferred, fail
from twisted.internet.interfaces import IAddress
from zope.interface import implementer

from disque_tx.commands.clients import check_name
from disque_tx.commands.values import ValueReplies
from disque_tx.core.client import Client
from disque_tx.errors import CommandError
from disque_tx.services.clients.protocol import describe
from disque_tx.services.clients.roles import Passwords, check_role
from disque_tx.services.interfaces import IConnection, Role

if TYPE_CHECKING:
    from disque_tx.services.clients.admission import Admission
    from disque_tx.services.clients.embedded import NodeService
    from disque_tx.services.runtime import Runtime


@implementer(IConnection)
class Guest:
    """One client. ``client``: its row. Each of its calls has a row of its own, because they may
    block at the same time."""

    def __init__(self, guests: Guests, client: Client, transport: Any) -> None:
        self._guests = guests
        self._transport = transport
        self._peer: IAddress = transport.getPeer()
        self._calls: set[Deferred[Any]] = set()
        self.client = client

    def authenticate(self, password: bytes | None) -> Role:
        """What a client with this password may do."""
        return self._guests.passwords.role(password, self._peer)

    def call(self, role: Role, *words: bytes) -> Deferred[Any]:
        """Run a command, if the role allows it."""
        try:
            check_role(role, words)
        except CommandError as error:
            return fail(error)
        guests = self._guests
        self.client.last_command = words[0].lower()
        call = guests.service.call_from(self.client.addr, *words)
        self._calls.add(call)
        return call.addBoth(self._over, call)

    def _over(self, result: object, call: Deferred[Any]) -> object:
        self._calls.discard(call)
        return result

    def rename(self, name: bytes) -> None:
        """The name in CLIENT LIST."""
        check_name(name)
        self.client.name = name

    def received(self, size: int) -> None:
        """Bytes arrived."""
        runtime = self._guests.runtime
        self.client.seen_ms = runtime.node.now_ms
        runtime.server.stats.net_input_bytes += size

    def sent(self, size: int) -> None:
        """Bytes were written."""
        self._guests.runtime.server.stats.net_output_bytes += size

    def closed(self) -> None:
        """The transport is gone."""
        if self._guests.forget(self):
            for call in list(self._calls):
                call.cancel()

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

    def admit(self, transport: Any, protocol: str) -> Guest:
        """Register a client, or raise the ``CommandError`` of its refusal."""
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
        guest = Guest(self, client, transport)
        self._admission.enter(client)
        self.runtime.calls[client.id] = guest
        return guest

    def forget(self, guest: Guest) -> bool:
        """The client is gone; ``False`` when that was known."""
        if self.runtime.calls.pop(guest.client.id, None) is None:
            return False
        self._admission.dismiss(guest.client)
        return True
