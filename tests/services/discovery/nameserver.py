"""A name server whose names change, vanish, lie, and time out, on this host."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from twisted.internet.defer import Deferred, fail, gatherResults, succeed
from twisted.internet.error import CannotListenError
from twisted.names import dns, error
from twisted.names.server import DNSServerFactory

_TRIES = 20
_TTL_S = 3600
_DATAGRAM_BYTES = 512
_CODES = {error.DNSNameError: dns.ENAME, error.DNSQueryRefusedError: dns.EREFUSED}


class _Factory(DNSServerFactory):
    """Answers as short as datagrams may be, and errors by their kinds."""

    noisy = False

    def sendReply(self, protocol: Any, message: Any, address: Any) -> None:
        """``address``: of a client that asked by UDP."""
        if address is not None:
            message.maxSize = _DATAGRAM_BYTES
        super().sendReply(protocol, message, address)

    def gotResolverError(self, failure: Any, protocol: Any, message: Any, address: Any) -> None:
        """The question has no answer."""
        code = next((code for kind, code in _CODES.items() if failure.check(kind)), dns.ESERVER)
        response = self._responseFromMessage(message=message, rCode=code)
        self.sendReply(protocol, response, address)


class NameServer:
    """Answers by UDP and TCP at one port of ``ip``. ``asked``: how many questions came.

    A name is set by :meth:`hosts` and :meth:`services`, and has no records until then. ``silent``,
    ``failing`` and ``refusing`` are names about which it keeps silent, fails, or refuses.
    """

    def __init__(self, reactor: Any, ip: str = "127.0.0.1") -> None:
        self.ip = ip
        self.asked = 0
        self.silent: set[str] = set()
        self.failing: set[str] = set()
        self.refusing: set[str] = set()
        self._records: dict[tuple[str, int], list[Any]] = {}
        self._additional: list[dns.RRHeader] = []
        factory = _Factory(clients=[self])
        for _ in range(_TRIES):
            tcp = reactor.listenTCP(0, factory, interface=ip)
            try:
                protocol = dns.DNSDatagramProtocol(factory)
                protocol.noisy = False
                udp = reactor.listenUDP(tcp.getHost().port, protocol, interface=ip)
            except CannotListenError:
                tcp.stopListening()
                continue
            self.port = tcp.getHost().port
            self._ports = [tcp, udp]
            self._factory = factory
            return
        raise AssertionError("no port is free for UDP and TCP")

    @property
    def address(self) -> str:
        """As in ``cluster-discovery-nameservers``."""
        return f"{self.ip}:{self.port}"

    def stop(self) -> Deferred[Any]:
        """Close the ports and connections."""
        for protocol in list(self._factory.connections):
            protocol.transport.abortConnection()
        return gatherResults([succeed(port.stopListening()) for port in self._ports])

    def hosts(self, name: str, addresses: Sequence[str]) -> None:
        """The name has these addresses, of either kind; none: it does not exist."""
        for kind, record in ((dns.A, dns.Record_A), (dns.AAAA, dns.Record_AAAA)):
            chosen = [ip for ip in addresses if (":" in ip) == (kind == dns.AAAA)]
            self._set(name, kind, [record(ip, ttl=_TTL_S) for ip in chosen])

    def services(self, name: str, targets: Sequence[tuple[str, int]]) -> None:
        """The name has SRV records for these hosts and ports."""
        self._set(
            name,
            dns.SRV,
            [dns.Record_SRV(0, 0, port, host.encode(), ttl=_TTL_S) for host, port in targets],
        )

    def add_along(self, host: str, ip: str) -> None:
        """Every answer about SRV records also says that this host has this address."""
        self._additional.append(dns.RRHeader(host, dns.A, payload=dns.Record_A(ip), ttl=_TTL_S))

    def _set(self, name: str, kind: int, payloads: list[Any]) -> None:
        self._records[name, kind] = [
            dns.RRHeader(name, kind, payload=payload, ttl=_TTL_S) for payload in payloads
        ]

    def query(self, query: Any, timeout: object = None) -> Deferred[Any]:
        """Answer one question of a client."""
        self.asked += 1
        name = query.name.name.decode().lower()
        if name in self.silent:
            return Deferred()
        if name in self.failing:
            return fail(error.DNSServerError())
        if name in self.refusing:
            return fail(error.DNSQueryRefusedError())
        if not any(records for (known, _), records in self._records.items() if known == name):
            return fail(error.DNSNameError())
        along = self._additional if query.type == dns.SRV else []
        return succeed((self._records.get((name, query.type), []), [], along))
