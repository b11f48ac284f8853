"""Listening sockets: on all TCP addresses that are asked for or on none, and at Unix sockets.

1. Addresses that the configuration names must be there, all of them.
2. The defaults come in pairs, one address of IPv4 and one of IPv6. One of a pair may be missing
   when this host lacks its family, and for no other reason: a node that others reach on one family
   only, because a stranger holds the port on the other, looks well and is not.
3. A Unix socket belongs to one node: one that another process listens on is left alone.
"""

from __future__ import annotations

import errno
import fcntl
import os
import socket
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from twisted.internet.address import IPv4Address, IPv6Address, UNIXAddress
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IAddress, IProtocolFactory

from disque_tx.config.paths import os_error_text
from disque_tx.errors import ConfigError
from disque_tx.services.net.sockets import Adopter, FastPort, listen_tcp

#: Errors of the system for an address of a family that is turned off.
_FAMILY_LACKING: Final = (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL)
#: Ports below need a privilege.
_PRIVILEGED: Final = 1024
_PORT_RANGE: Final = "/proc/sys/net/ipv4/ip_local_port_range"

Listen = Callable[[str, int, int], socket.socket]


def listen_on(
    hosts: Sequence[str],
    port: int,
    backlog: int,
    is_pair: bool,
    *,
    purpose: str = "",
    directive: str = "port",
    listen: Listen = listen_tcp,
) -> list[socket.socket]:
    """Sockets that listen on ``hosts``, in their order.

    ``is_pair``: they are a pair of defaults, see above. ``purpose``: words for errors, such as
    ``for other nodes``. ``directive``: what gives another port. Raises ``ConfigError`` when an
    address cannot be listened on; nothing is open then.
    """
    sockets: list[socket.socket] = []
    failures: list[tuple[str, OSError]] = []
    for host in hosts:
        try:
            sockets.append(listen(host, port, backlog))
        except OSError as error:
            failures.append((host, error))
    bearable = is_pair and sockets and all(_lacks_family(error) for _, error in failures)
    if failures and not bearable:
        for sock in sockets:
            sock.close()
        where = "; ".join(
            f"{shown_address(host, port)}: {os_error_text(error)}" for host, error in failures
        )
        raise ConfigError(
            f"Could not listen {purpose + ' ' if purpose else ''}on {where}."
            f" {_advice(port, directive, failures)}"
        )
    return sockets


def _lacks_family(error: OSError) -> bool:
    return error.errno in _FAMILY_LACKING


def _advice(port: int, directive: str, failures: list[tuple[str, OSError]]) -> str:
    numbers = {error.errno for _, error in failures}
    if errno.EADDRNOTAVAIL in numbers:
        return "No such address is on this machine: check 'bind'."
    if errno.EACCES in numbers and port < _PRIVILEGED:
        return f"Ports below 1024 need a privilege; another one can be given with '{directive}'."
    advice = f"Another port can be given with '{directive}'."
    if not any(error.errno == errno.EADDRINUSE for _, error in failures):
        return advice
    first, last = outgoing_ports()
    if first <= port <= last:
        advice += (
            f" Port {port} is one of those that this system uses for outgoing connections ({first}"
            f" to {last}), and one of these may hold it. To keep the port free for the node, add it"
            f" to net.ipv4.ip_local_reserved_ports: 'sysctl -w"
            f" net.ipv4.ip_local_reserved_ports={port}'."
        )
    return advice


def outgoing_ports(path: str = _PORT_RANGE) -> tuple[int, int]:
    """First and last of the ports that the system uses for outgoing connections; ``(0, -1)`` when
    that is unknown."""
    try:
        with open(path, encoding="ascii") as file:
            first, last = map(int, file.read().split())
    except (OSError, ValueError):
        return 0, -1
    return first, last


def shown_host(address: IAddress) -> str:
    """Where a port listens or a client is, as people write it."""
    if isinstance(address, IPv4Address | IPv6Address):
        return shown_address(address.host, address.port)
    if isinstance(address, UNIXAddress) and address.name:
        return f"unix:{os.fsdecode(address.name)}"
    return str(address)


def shown_address(host: str, port: int) -> str:
    """An address as people write it, with brackets around IPv6."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


#: How long another node may be busy with the same folder: it makes a socket there.
_TIMEOUT_S: Final = 1.0
_LOOK_EVERY_S: Final = 0.01


class UnixPort(FastPort):
    """A listening Unix socket, whose name goes when it is closed."""

    def __init__(
        self, reactor: Any, hub: Adopter, sock: socket.socket, factory: IProtocolFactory
    ) -> None:
        super().__init__(reactor, hub, sock, factory)
        self._path = os.path.abspath(sock.getsockname())
        self._made = os.stat(self._path)

    def stopListening(self) -> Deferred[None]:
        """Accept no more; the name is removed, unless another socket has it meanwhile."""
        try:
            if os.path.samestat(os.stat(self._path), self._made):
                os.unlink(self._path)
        except OSError:
            pass  # it is gone already, or stays as a stale one
        return super().stopListening()


def listen_unix(path: str, backlog: int, mode: int) -> socket.socket:
    """A socket that listens at ``path``; a stale one of a process that died is replaced.

    ``mode``: permissions, 0 for those of the process. Raises ``OSError`` when that is not possible,
    also when another process listens there.
    """
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with _alone_in(os.path.dirname(path) or "."):
            _remove_stale(path)
            sock.bind(path)
            if mode:
                os.chmod(path, mode)
            sock.listen(backlog)
    except OSError:
        sock.close()
        raise
    return sock


@contextmanager
def _alone_in(folder: str) -> Iterator[None]:
    """No other node looks for stale sockets in the folder meanwhile: of two that start at once, the
    second one would remove the socket of the first."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        end_s = time.monotonic() + _TIMEOUT_S
        while time.monotonic() < end_s:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                time.sleep(_LOOK_EVERY_S)
            except OSError:
                break  # a file system without locks
        yield
    finally:
        os.close(fd)


def _remove_stale(path: str) -> None:
    """Remove a socket that no process listens on; ``OSError`` for one that is in use, and for any
    other file."""
    try:
        kind = os.lstat(path).st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(kind):
        raise OSError(errno.EEXIST, "a file that is not a socket has this name", path)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)  # a full queue means that a process listens, too
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            os.unlink(path)
            return
        except FileNotFoundError:
            return
        except OSError:
            pass
    raise OSError(errno.EADDRINUSE, "another process listens there", path)
