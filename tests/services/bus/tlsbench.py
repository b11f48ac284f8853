"""A node with TLS for tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from twisted.internet import tcp
from twisted.internet.testing import MemoryReactorClock

from tests.forwardclock import ForwardReactor
from tests.services.bus.bench import BusCase
from tests.services.net.certificates import Authority


class AdoptingReactor(ForwardReactor):
    """A reactor in memory that accepts real sockets."""

    def adoptStreamConnection(self, fileDescriptor: int, addressFamily: int, factory: Any) -> Any:
        return tcp.Server._fromConnectedSocket(fileDescriptor, addressFamily, factory, self)


class TlsCase(BusCase):
    """Tests with a certificate authority and a certificate for this node."""

    def setUp(self) -> None:
        super().setUp()
        self.folder = Path(self.mktemp())
        self.folder.mkdir()
        self.authority = Authority(self.folder, "authority")
        settings = self.settings
        settings.cluster_bus_tls = True
        settings.cluster_bus_tls_ca = self.authority.path
        settings.cluster_bus_tls_cert, settings.cluster_bus_tls_key = self.authority.issue("node")

    def make_reactor(self) -> MemoryReactorClock:
        return AdoptingReactor()
