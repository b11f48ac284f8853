"""Which clients may connect: the limit on clients, protected mode, the password; and the clients
that are connected."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from twisted.internet.address import IPv4Address, IPv6Address
from twisted.internet.interfaces import IAddress
from twisted.python.failure import Failure

from disque_tx.core.base.client import Client
from disque_tx.services.net.listening import shown_host

if TYPE_CHECKING:
    from disque_tx.config.settings import Settings
    from disque_tx.services.machine.log import DaemonLog
    from disque_tx.services.turns.runtime import Runtime

_FULL: Final = b"ERR max number of clients reached"
_PROTECTED: Final = (
    b"DENIED This node runs in protected mode: it has no password, so only clients on its own host"
    b" are served. To serve others, set a password with the directive 'requirepass', or set"
    b" 'protected-mode no' in the configuration if the network itself keeps strangers away."
)

#: Added for a client of this host that connected to an address which others could use, too.
_BY_LOOPBACK: Final = (
    b" You are on its own host, but connected to one of its network addresses: connect to a"
    b" loopback address, such as 127.0.0.1 or ::1, or to the Unix socket."
)


class Admission:
    """Admits clients to one node, and removes them."""

    def __init__(self, runtime: Runtime, settings: Settings, log: DaemonLog) -> None:
        self._runtime = runtime
        self._settings = settings
        self._log = log
        self._last_id = 0

    def password_required(self) -> bool:
        """Whether clients must authenticate first."""
        return bool(self._settings.requirepass)

    def refuse(self, peer: IAddress, host: IAddress) -> bytes:
        """Why this peer, which connected to our address ``host``, is refused; empty if it is
        not."""
        server = self._runtime.server
        if len(server.clients) >= self._settings.maxclients:
            server.stats.rejected_connections += 1
            return _FULL
        if self._settings.protected_mode and not self.password_required() and not is_local(peer):
            server.stats.rejected_connections += 1
            self._log.verbose(f"Refused {shown_host(peer)} in protected mode")
            return _PROTECTED + (_BY_LOOPBACK if _is_same_host(peer, host) else b"")
        return b""

    def keepalive_s(self) -> int:
        """After how many idle seconds the system probes whether a client is alive; 0 for never."""
        return self._settings.tcp_keepalive

    def next_id(self) -> int:
        """The ID of the next client."""
        self._last_id += 1
        return self._last_id

    def enter(self, client: Client) -> None:
        """Put an admitted client into the table."""
        server = self._runtime.server
        server.clients[client.id] = client
        server.stats.connections_received += 1
        self._log.verbose(f"Accepted {client.addr.decode('utf-8', 'replace')}")

    def dismiss(self, client: Client) -> None:
        """The connection is gone."""
        runtime = self._runtime
        del runtime.server.clients[client.id]
        if client.monitor:
            runtime.server.monitors.remove(client)
        runtime.node.client_gone(client)
        self._log.verbose(f"Client closed connection {client.addr.decode('utf-8', 'replace')}")

    def refused_without_password(self, protocol: bytes, peer: IAddress) -> None:
        """A client of a protocol without passwords came from another host, and there is one."""
        self._runtime.server.stats.rejected_connections += 1
        self._log.warning(
            f"Refused {shown_host(peer)}: with 'requirepass', clients of"
            f" {protocol.decode()}, which knows no password, must come from this host"
        )

    def report(self, client: Client, failure: Failure) -> None:
        """A request of this client met a fault of this program; its connection ends."""
        self._log.warning(
            f"A fault in this program ended the connection of"
            f" {client.addr.decode('utf-8', 'replace')} (last command:"
            f" {client.last_command.decode()}). Please report what follows."
        )
        for line in failure.getTraceback().splitlines():
            self._log.warning(line)

    def warn(self, client: Client, what: str) -> None:
        """A client did something that ends its connection."""
        self._log.warning(f"Client {client.addr.decode('utf-8', 'replace')}: {what}")


def is_local(peer: IAddress) -> bool:
    """Whether the peer is on this host: loopback, or a Unix socket."""
    if isinstance(peer, (IPv4Address, IPv6Address)):
        host = peer.host.removeprefix("::ffff:")
        return host == "::1" or host.startswith("127.")
    return True


def _is_same_host(peer: IAddress, host: IAddress) -> bool:
    """Whether both ends of a connection have one address."""
    both = (IPv4Address, IPv6Address)
    return isinstance(peer, both) and isinstance(host, both) and peer.host == host.host
