"""Expiring certificates, and renewing them without a restart."""

from __future__ import annotations

import shutil
import socket
import ssl
from datetime import datetime
from pathlib import Path
from typing import Any

from twisted.internet import tcp
from twisted.protocols.tls import TLSMemoryBIOFactory

from disque_tx.errors import ConfigError
from disque_tx.services.bus.tls import tls_options
from disque_tx.services.net.certificates import Certificates, Identity
from disque_tx.services.node.root import NodeRoot
from tests.acceptance.daemon import free_port
from tests.services.bus.tlsbench import AdoptingReactor, TlsCase
from tests.services.net.certificates import Authority
from tests.services.nodebench import drive
from tests.services.rootbench import RootCase, RootReactor

DAY_S = 86_400


class ExpiryTests(TlsCase):
    """Warnings ahead of the expiry."""

    def certificates(self, days: int) -> Certificates:
        """Monitors a certificate that is valid for this many days and an hour."""
        self.authority.days = days
        settings = self.settings
        settings.cluster_bus_tls_cert, settings.cluster_bus_tls_key = self.authority.issue("own")
        identity = Identity("the bus", lambda: tls_options(settings))
        now_s = datetime.now().timestamp() - 3600
        return Certificates(
            lambda: [identity], self.log, self.reactor, lambda: now_s + self.reactor.seconds()
        )

    def test_long(self) -> None:
        """A certificate that is valid for more than 30 days causes no warning."""
        self.certificates(31).check()
        self.assertNotIn("certificate", self.logged())

    def test_short_life(self) -> None:
        """A certificate that is made for three days causes no warning before its last one, so
        that those who renew theirs each day are not warned all the time."""
        self.authority.past_days = 1
        watch = self.certificates(2)
        watch.check()
        self.assertNotIn("certificate", self.logged())
        self.assertEqual(("certificate_near_end_seconds", str(DAY_S)), watch.info()[2])
        self.reactor.advance(1.5 * DAY_S)
        watch.check()
        self.assertIn("in 0 days", self.logged())

    def test_info(self) -> None:
        """INFO says which certificate ends first, and when, so that monitoring sees it coming."""
        watch = self.certificates(2)
        name, left, near = watch.info()
        self.assertEqual(("certificate_next", "the bus"), name)
        self.assertEqual("certificate_expires_in_seconds", left[0])
        self.assertEqual(2, (int(left[1]) + 60) // DAY_S)
        self.assertEqual(("certificate_near_end_seconds", str(30 * DAY_S)), near)
        self.reactor.advance(3 * DAY_S)
        self.assertEqual(("certificate_expires_in_seconds", "0"), watch.info()[1])
        self.assertEqual([], Certificates(list, self.log, self.reactor).info())

    def test_soon(self) -> None:
        """A certificate that expires soon is logged daily, with advice, until it has expired."""
        watch = self.certificates(2)
        watch.startService()
        self.reactor.pump([DAY_S] * 3)
        watch.stopService()
        lines = [line for line in self.logged().splitlines() if "the bus: the certificate" in line]
        for line, left in zip(
            lines, ("in 2 days", "in 1 day.", "in 0 days", "expired"), strict=True
        ):
            self.assertIn(left, line)
            self.assertIn("send SIGHUP", line)
        self.assertEqual([], self.reactor.getDelayedCalls())

    def test_nothing_to_watch(self) -> None:
        """A node without TLS has no certificates to monitor."""
        watch = Certificates(list, self.log, self.reactor)
        watch.startService()
        watch.reload()
        watch.stopService()
        self.assertIn("no certificates", self.logged())


class ListeningReactor(RootReactor, AdoptingReactor):
    """A reactor in memory with real listening sockets."""

    def listenSSL(
        self,
        port: int,
        factory: Any,
        contextFactory: Any,
        backlog: int = 50,
        interface: str = "",
    ) -> Any:
        secure = TLSMemoryBIOFactory(contextFactory, False, factory, self)
        listening = tcp.Port(port, secure, backlog, interface, self)
        listening.startListening()
        return listening


class ReloadTests(RootCase):
    """The reload on SIGHUP, as far as it can be tested without a process."""

    def setUp(self) -> None:
        super().setUp()
        self.reactor = ListeningReactor()
        self.port = free_port()
        self.certificate, self.key = str(self.folder / "now.crt"), str(self.folder / "now.key")
        self.first = Authority(self.folder, "first")
        self.second = Authority(self.folder, "second")
        self.use(self.first)

    def stopped(self, root: NodeRoot) -> None:
        """Stop the node; TLS connections need some time to close."""
        stopped = root.stopService()
        self.reactor.advance(2)
        drive(self.reactor)
        self.successResultOf(stopped)

    def use(self, authority: Authority) -> None:
        """Install a certificate."""
        certificate, key = authority.issue("node")
        shutil.copy(certificate, self.certificate)
        shutil.copy(key, self.key)

    def listening(self, *endpoint: str, **settings: object) -> None:
        """A node with these listeners."""
        self.settings = self.make_settings(listen=[("resp", each) for each in endpoint], **settings)
        self.root = self.started()

    def shown(self, port: int) -> bytes | None:
        """The certificate that a port presents, whoever signed it."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        client = socket.create_connection(("127.0.0.1", port))
        client.setblocking(False)
        with context.wrap_socket(client, do_handshake_on_connect=False) as secure:
            for _ in range(20):
                drive(self.reactor)
                try:
                    secure.do_handshake()
                except ssl.SSLWantReadError:
                    continue
                return secure.getpeercert(True)
        raise AssertionError("no handshake")

    def now(self) -> bytes:
        """The certificate in the file."""
        return ssl.PEM_cert_to_DER_cert(Path(self.certificate).read_text())

    def check(self, port: int) -> None:
        """The new certificate is presented after a reload, and an invalid file changes nothing."""
        old = self.now()
        self.assertEqual(old, self.shown(port))
        self.use(self.second)
        self.assertEqual(old, self.shown(port))
        self.root.certificates.reload()
        self.assertEqual(self.now(), self.shown(port))
        self.assertIn("the certificate was reloaded", self.logged())
        new = self.now()
        Path(self.certificate).write_text("nonsense")
        self.root.certificates.reload()
        self.assertEqual(new, self.shown(port))
        self.assertIn("the old certificate stays in use", self.logged())

    def test_listener(self) -> None:
        """A listener for clients with TLS."""
        self.listening(
            f"ssl:{self.port}:privateKey={self.key}:certKey={self.certificate}:interface=127.0.0.1"
        )
        self.check(self.port)
        self.assertIn(
            "interface=127.0.0.1: the old certificate stays in use: The certificate or the key is"
            " damaged: no start line\n",
            self.logged(),
        )

    def refused(self) -> str:
        """Why a node with the certificate as it is does not start."""
        endpoint = f"ssl:{self.port}:privateKey={self.key}:certKey={self.certificate}"
        self.settings = self.make_settings(listen=[("resp", endpoint)])
        root = self.make()
        with self.assertRaises(ConfigError) as caught:
            root.privilegedStartService()
        self.successResultOf(root.stopService())
        directive, reason = str(caught.exception).split(": this endpoint cannot be used: ")
        self.assertEqual(f"listen resp {endpoint}", directive)
        return reason

    def test_unusable_at_start(self) -> None:
        """A listener's certificate that cannot be used ends the start with a reason in words,
        which names a file that is missing."""
        shutil.copy(self.second.issue("other")[0], self.certificate)
        self.assertEqual("Certificate public and private keys do not match.", self.refused())
        Path(self.certificate).write_text("nonsense")
        self.assertEqual("The certificate or the key is damaged: no start line", self.refused())
        Path(self.certificate).unlink()
        self.assertEqual(f"No such file or directory: {self.certificate}", self.refused())

    def test_bus(self) -> None:
        """The bus."""
        self.listening(
            port=self.port,
            bind=["127.0.0.1"],
            cluster_bus_tls=True,
            cluster_bus_tls_cert=self.certificate,
            cluster_bus_tls_key=self.key,
            cluster_bus_tls_ca=self.first.path,
        )
        self.check(self.port + 10_000)

    def test_none(self) -> None:
        """Without TLS nothing is reloaded."""
        self.listening()
        self.root.certificates.reload()
        self.assertIn("There are no certificates to reload", self.logged())
