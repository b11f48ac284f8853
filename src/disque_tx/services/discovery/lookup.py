"""One source of addresses: it is looked up, and its answer is a list of places."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from typing import Any, Final

from twisted.internet.defer import Deferred, DeferredList, DeferredSemaphore, inlineCallbacks

from disque_tx.config.sources import NodePlace, Source, parse_file
from disque_tx.core.nodes.discovery import Place
from disque_tx.services.discovery.names import LookupFailed, Names

FILE_BYTES_MAX: Final = 1024 * 1024
_AT_A_TIME: Final = 20

#: Gives the ports at which a node is that is listed with these, of which 0 stands for 'not given'.
Ports = Callable[[int, int], tuple[int, int]]
#: What tells one content of a file from another, without reading it.
Signature = tuple[int, int, int]


class Lookup:
    """``in_thread``: calls a function that blocks, with its arguments, in another thread."""

    def __init__(
        self,
        source: Source,
        names: Names,
        in_thread: Callable[..., Deferred[Any]],
        ports: Ports,
    ) -> None:
        self.source = source
        self._names = names
        self._in_thread = in_thread
        self._ports = ports

    def run(self) -> Deferred[list[Place]]:
        """The places, of which there is one at least; ``LookupFailed`` when there is none."""
        kinds = {"srv": self._services, "file": self._file}
        return kinds.get(self.source.kind, self._listed)()

    def signature(self) -> Deferred[Signature | None]:
        """What changes with the content of the file; ``None`` while there is none."""
        return self._in_thread(_signature, self.source.name)

    def _listed(self) -> Deferred[list[Place]]:
        return self._resolved(self.source.places)

    @inlineCallbacks
    def _services(self) -> Generator[Deferred[Any], Any, list[Place]]:
        found = yield self._names.services(self.source.name)
        return [(ip.encode(), *self._ports(port, 0)) for ip, port in found]

    @inlineCallbacks
    def _file(self) -> Generator[Deferred[Any], Any, list[Place]]:
        try:
            text = yield self._in_thread(_read, self.source.name)
            places = parse_file(text)
        except OSError as error:
            raise LookupFailed(error.strerror or "it cannot be read") from None
        except ValueError as error:
            raise LookupFailed(str(error)) from None
        if not places:
            raise LookupFailed("it lists no node")
        found = yield self._resolved(places)
        return list(found)

    @inlineCallbacks
    def _resolved(
        self, places: tuple[NodePlace, ...]
    ) -> Generator[Deferred[Any], Any, list[Place]]:
        """The addresses of all these hosts; those that are not found are left out if any is."""
        gate = DeferredSemaphore(_AT_A_TIME)
        hosts = list(dict.fromkeys(place.host for place in places))
        results = yield DeferredList(
            [gate.run(self._names.addresses, host) for host in hosts], consumeErrors=True
        )
        known: dict[str, list[str]] = {}
        why = ""
        for host, (good, result) in zip(hosts, results, strict=True):
            known[host] = result if good else []
            if not good:
                if not result.check(LookupFailed):
                    result.raiseException()
                text = result.getErrorMessage()
                why = text if len(hosts) == 1 else f"{host}: {text}"
        found = [
            (ip.encode(), *self._ports(place.port, place.bus_port))
            for place in places
            for ip in known[place.host]
        ]
        if not found:
            raise LookupFailed(why)
        return found


def _signature(path: str) -> Signature | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


def _read(path: str) -> str:
    with open(path, "rb") as file:
        data = file.read(FILE_BYTES_MAX + 1)
    if len(data) > FILE_BYTES_MAX:
        raise ValueError(f"it is longer than {FILE_BYTES_MAX} bytes")
    return data.decode("utf-8", "replace")
