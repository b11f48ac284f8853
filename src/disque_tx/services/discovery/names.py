"""Names become addresses, by Twisted's resolver: A, AAAA and SRV records, and the file of hosts.

The name servers and the domains to search are those of the system, read anew for each lookup, so
that a change takes effect; or the servers that the configuration names. A client is made for each
lookup and leaves nothing behind: no open port, no timer, no cache. How long an answer counts is
decided by the interval of discovery, not by its TTL.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from socket import AF_INET6, inet_ntop
from typing import Any, Final

import attrs
from twisted.internet.abstract import isIPAddress, isIPv6Address
from twisted.internet.defer import Deferred, DeferredList, DeferredSemaphore, inlineCallbacks
from twisted.internet.defer import TimeoutError as DeferredTimeoutError
from twisted.names import dns, error
from twisted.names.client import Resolver
from twisted.names.hosts import searchFileForAll
from twisted.python.failure import Failure
from twisted.python.filepath import FilePath

#: How long each try of a query waits for its answer, in seconds; together less than an interval.
TIMEOUTS_S: Final = (1, 2, 3)
_DNS_PORT: Final = 53
_SEARCHED_MAX: Final = 6
#: SRV records whose hosts are looked up, and how many at a time.
_TARGETS_MAX: Final = 1_000
_AT_A_TIME: Final = 20


class LookupFailed(Exception):
    """A name has no address; the text says why."""


@attrs.frozen
class SystemFiles:
    """Where the system says which name servers there are, and which hosts it knows itself."""

    resolv_conf: str = "/etc/resolv.conf"
    hosts: str = "/etc/hosts"


@attrs.frozen
class _Servers:
    addresses: list[tuple[str, int]]
    search: list[str]


class Names:
    """``reactor``: of Twisted. ``servers``: address and port of name servers, empty for those of
    the system; with them, neither its hosts nor its domains are looked at."""

    def __init__(
        self,
        reactor: Any,
        servers: Sequence[tuple[str, int]] = (),
        files: SystemFiles | None = None,
    ) -> None:
        self._reactor = reactor
        self._servers = list(servers)
        self._files = files or SystemFiles()

    def addresses(self, host: str) -> Deferred[list[str]]:
        """All addresses of a host; ``LookupFailed`` when there is none."""
        return self._addresses(host)

    @inlineCallbacks
    def _addresses(self, host: str) -> Generator[Deferred[Any], Any, list[str]]:
        if isIPAddress(host) or isIPv6Address(host):
            return [host]
        if not self._servers:
            known = searchFileForAll(FilePath(self._files.hosts), host.encode().lower())
            if known:
                return [str(address) for address in known]
        servers = self._read_servers()
        why = ""
        for name in _full_names(host, servers.search):
            found, why = yield self._both_kinds(servers, name)
            if found:
                return list(dict.fromkeys(found))
        raise LookupFailed(why)

    @inlineCallbacks
    def _both_kinds(
        self, servers: _Servers, name: str
    ) -> Generator[Deferred[Any], Any, tuple[list[str], str]]:
        """The addresses that a name has, or why it has none."""
        resolver = self._resolver(servers)
        queries = [resolver.lookupAddress, resolver.lookupIPV6Address]
        results = yield DeferredList(
            [query(name, timeout=TIMEOUTS_S) for query in queries], consumeErrors=True
        )
        _close(resolver)
        found = [one for good, result in results if good for one in _records(result[0])]
        failures = [result for good, result in results if not good]
        return found, _reason(failures[0]) if failures else "it has no addresses"

    def services(self, name: str) -> Deferred[list[tuple[str, int]]]:
        """Addresses and ports of the hosts that SRV records name; ``LookupFailed`` when there are
        none."""
        return self._services(name)

    @inlineCallbacks
    def _services(self, name: str) -> Generator[Deferred[Any], Any, list[tuple[str, int]]]:
        servers = self._read_servers()
        resolver = self._resolver(servers)
        try:
            answers, _, additional = yield resolver.lookupService(name, timeout=TIMEOUTS_S)
        except Exception:
            raise LookupFailed(_reason(Failure())) from None
        finally:
            _close(resolver)
        known: dict[bytes, list[str]] = {}
        for record in additional:
            known.setdefault(record.name.name.lower(), []).extend(_records([record]))
        targets = [
            (record.payload.target.name.lower(), int(record.payload.port))
            for record in answers
            if record.type == dns.SRV and record.payload.target.name.strip(b".")
        ][:_TARGETS_MAX]
        gate = DeferredSemaphore(_AT_A_TIME)
        missing = [host for host in dict.fromkeys(host for host, _ in targets) if host not in known]
        results = yield DeferredList(
            [gate.run(self.addresses, host.decode("latin-1")) for host in missing],
            consumeErrors=True,
        )
        why = "it has no SRV records"
        for host, (good, result) in zip(missing, results, strict=True):
            known[host] = result if good else []
            if not good:
                why = f"{host.decode('latin-1')}: {result.value}"
        found = [(address, port) for host, port in targets for address in known[host]]
        if not found:
            raise LookupFailed(why)
        return list(dict.fromkeys(found))

    def _resolver(self, servers: _Servers) -> Resolver:
        return Resolver(servers=servers.addresses, timeout=TIMEOUTS_S, reactor=self._reactor)

    def _read_servers(self) -> _Servers:
        if self._servers:
            return _Servers(self._servers, [])
        addresses: list[tuple[str, int]] = []
        search: list[str] = []
        try:
            with open(self._files.resolv_conf, encoding="utf-8", errors="replace") as file:
                lines = [line.split() for line in file.read(64 * 1024).splitlines()]
        except OSError:
            lines = []
        for words in lines:
            if len(words) > 1 and words[0] == "nameserver":
                addresses.append((words[1], _DNS_PORT))
            elif len(words) > 1 and words[0] in ("search", "domain"):
                search = words[1 : 1 + _SEARCHED_MAX]
        return _Servers(addresses or [("127.0.0.1", _DNS_PORT)], search)


def _full_names(host: str, search: list[str]) -> list[str]:
    """The names to ask for, in order: as a name without a dot is searched first, any other last."""
    if host.endswith("."):
        return [host.rstrip(".")]
    searched = [f"{host}.{domain.strip('.')}" for domain in search if domain.strip(".")]
    return [host, *searched] if "." in host or not searched else [*searched, host]


def _records(records: list[Any]) -> list[str]:
    """The addresses in records; of other types, as on the way to an alias, there may be more."""
    return [
        record.payload.dottedQuad() if record.type == dns.A else _ipv6(record.payload)
        for record in records
        if record.type in (dns.A, dns.AAAA)
    ]


def _ipv6(payload: Any) -> str:
    return inet_ntop(AF_INET6, payload.address)


def _close(resolver: Resolver) -> None:
    """End the connections that long answers needed."""
    for protocol in list(resolver.connections):
        protocol.transport.loseConnection()


def _reason(failure: Failure) -> str:
    if failure.check(error.DNSNameError):
        return "there is no such name"
    if failure.check(DeferredTimeoutError, error.DNSQueryTimeoutError, error.ResolverError):
        return "no name server answers"
    if failure.check(error.DNSQueryRefusedError):
        return "the name server refuses to answer"
    if failure.check(error.DNSServerError):
        return "the name server has failed"
    return f"the lookup failed ({type(failure.value).__name__})"
