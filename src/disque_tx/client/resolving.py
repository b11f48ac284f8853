"""Names of clusters become addresses of nodes, for all clients.

``dns:name:port`` has all addresses of a name; ``srv:name`` the hosts and ports of SRV records. The
lookups block: clients that must not wait make them in a thread. Names are looked up as the system
does it; SRV records, for which the system has no call, at its name servers, by queries of Twisted's
codec. With the variable ``DISQUE_NAMESERVERS`` (addresses with ports, separated by commas) both are
asked for there.
"""

from __future__ import annotations

import random
import socket
import struct
from collections.abc import Iterable
from os import environ
from typing import TYPE_CHECKING, Any, Final

from disque_tx.client.addresses import Address, address
from disque_tx.client.errors import NameNotFound

if TYPE_CHECKING:
    from twisted.names.dns import Message

#: More than any cluster has.
ADDRESSES_MAX: Final = 1_000
_VARIABLE: Final = "DISQUE_NAMESERVERS"
_RESOLV_CONF: Final = "/etc/resolv.conf"
_DNS_PORT: Final = 53
_TIMEOUTS_S: Final = (1.0, 2.0)
_DATAGRAM_BYTES: Final = 64 * 1024
_NO_SUCH_NAME: Final = 3


def resolve(lookups: Iterable[Address]) -> tuple[list[Address], NameNotFound | None]:
    """The addresses that these lookups give, each once; and why one of them gave none."""
    found: dict[Address, None] = {}
    why: NameNotFound | None = None
    for one in lookups:
        try:
            found.update(dict.fromkeys(_services(one) if one.kind == "srv" else _hosts(one)))
        except NameNotFound as error:
            why = error
    return list(found)[:ADDRESSES_MAX], why


def expanded(addresses: Iterable[Address]) -> list[Address]:
    """The addresses, with lookups replaced by what they give.

    :raises NameNotFound: if there is no address at all.
    """
    given = list(addresses)
    found, why = resolve([one for one in given if one.kind])
    every = [*(one for one in given if not one.kind), *found]
    if not every and why is not None:
        raise why
    return every


def _hosts(lookup: Address) -> list[Address]:
    """The addresses of a host, with the port of the lookup."""
    servers = environ.get(_VARIABLE, "")
    try:
        if servers:
            ips = _addresses(_servers(servers), lookup.host)
        else:
            rows = socket.getaddrinfo(lookup.host, lookup.port, type=socket.SOCK_STREAM)
            ips = [str(row[4][0]) for row in rows]
    except (OSError, UnicodeError) as error:
        raise NameNotFound(str(lookup), getattr(error, "strerror", None) or str(error)) from None
    if not ips:
        raise NameNotFound(str(lookup), "it has no addresses")
    return [Address(ip, lookup.port) for ip in ips]


def _services(lookup: Address) -> list[Address]:
    """The hosts and ports of SRV records."""
    from twisted.names import dns

    servers = _servers(environ.get(_VARIABLE, "")) or _system_servers()
    try:
        answer = _query(servers, lookup.host, dns.SRV)
    except (OSError, UnicodeError) as error:
        raise NameNotFound(str(lookup), getattr(error, "strerror", None) or str(error)) from None
    records: list[Any] = [one.payload for one in answer.answers if one.type == dns.SRV]
    targets = [(one.target.name.decode("latin-1").rstrip("."), one.port) for one in records]
    found = [Address(host, port) for host, port in targets if host and 0 < port < 65536]
    if not found:
        raise NameNotFound(str(lookup), "it has no SRV records")
    if not environ.get(_VARIABLE):
        return found
    return [address for one in found for address in _hosts(Address(one.host, one.port, "dns"))]


def _addresses(servers: list[Address], host: str) -> list[str]:
    from twisted.names import dns

    found: list[str] = []
    for kind, family in ((dns.A, socket.AF_INET), (dns.AAAA, socket.AF_INET6)):
        answer = _query(servers, host, kind)
        records: list[Any] = [one.payload for one in answer.answers if one.type == kind]
        found += [socket.inet_ntop(family, record.address) for record in records]
    return found


def _servers(text: str) -> list[Address]:
    given = [word.strip() for word in text.split(",") if word.strip()]
    return [address(word if ":" in word else f"{word}:{_DNS_PORT}") for word in given]


def _system_servers() -> list[Address]:
    try:
        with open(_RESOLV_CONF, encoding="utf-8", errors="replace") as file:
            lines = [line.split() for line in file]
    except OSError:
        lines = []
    found = [words[1] for words in lines if words[:1] == ["nameserver"] and len(words) > 1]
    return [Address(ip, _DNS_PORT) for ip in found] or [Address("127.0.0.1", _DNS_PORT)]


def _query(servers: list[Address], name: str, kind: int) -> Message:
    """The answer of the first name server that gives one; ``OSError`` if none does."""
    from twisted.names import dns

    for timeout_s in _TIMEOUTS_S:
        for server in servers:
            question = dns.Message(id=random.randrange(1 << 16), recDes=1)
            question.addQuery(name.encode("idna"), kind)
            try:
                answer = _exchange(server, question, timeout_s)
            except (OSError, EOFError, ValueError):
                continue
            if answer.rCode == _NO_SUCH_NAME:
                raise OSError(None, "there is no such name")
            if answer.rCode == dns.OK:
                return answer
    raise OSError(None, "no name server answers")


def _exchange(server: Address, question: Message, timeout_s: float) -> Message:
    """Ask one name server, by UDP, and by TCP if the answer is too long for that."""
    from twisted.names import dns

    data = question.toStr()
    family = socket.AF_INET6 if ":" in server.host else socket.AF_INET
    answer = dns.Message()
    with socket.socket(family, socket.SOCK_DGRAM) as sock:
        sock.settimeout(timeout_s)
        sock.connect((server.host, server.port))
        sock.send(data)
        answer.fromStr(sock.recv(_DATAGRAM_BYTES))
    if answer.id != question.id:
        raise ValueError("an answer to another question")
    if answer.trunc:
        with socket.create_connection((server.host, server.port), timeout_s) as stream:
            stream.sendall(struct.pack(">H", len(data)) + data)
            with stream.makefile("rb") as file:
                (size,) = struct.unpack(">H", file.read(2).rjust(2, b"\0"))
                answer = dns.Message()
                answer.fromStr(file.read(size))
    return answer
