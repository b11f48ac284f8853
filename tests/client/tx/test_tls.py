"""Verification of certificates, tested with handshakes in memory."""

from __future__ import annotations

from datetime import datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from OpenSSL import SSL, crypto
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.client import TLS
from disque_tx.client.tx.tls import creator

NAMES = [x509.DNSName("node.example"), x509.IPAddress(ip_address("10.0.0.1"))]


def self_signed(names: list[x509.GeneralName]) -> tuple[crypto.X509, crypto.PKey]:
    """A self-signed certificate for these hosts."""
    key = ec.generate_private_key(ec.SECP256R1())
    name, now = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "node.example")]), datetime.now()
    builder = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=2))
        .not_valid_after(now + timedelta(days=2))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    )
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    signed = crypto.X509.from_cryptography(builder.sign(key, hashes.SHA256()))
    return signed, crypto.PKey.from_cryptography_key(key)


class HandshakeTests(SynchronousTestCase):
    """A node with a certificate, and a client that trusts its issuer."""

    def is_accepted(
        self, host: str, names: list[x509.GeneralName] = NAMES, trusted: bool = True, **tls: Any
    ) -> bool:
        """Whether the client completes the handshake."""
        certificate, key = self_signed(names)
        ca_file = Path(self.mktemp())
        shown = certificate if trusted else self_signed(names)[0]
        ca_file.write_bytes(crypto.dump_certificate(crypto.FILETYPE_PEM, shown))
        context = SSL.Context(SSL.TLS_SERVER_METHOD)
        context.use_certificate(certificate)
        context.use_privatekey(key)
        node = SSL.Connection(context, None)
        node.set_accept_state()
        client = creator(host, TLS(str(ca_file), **tls)).clientConnectionForTLS(None)
        client.set_connect_state()
        return self.handshake(client, node)

    def handshake(self, client: SSL.Connection, node: SSL.Connection) -> bool:
        """Exchange the bytes of both sides."""
        for _ in range(4):
            for sender, receiver in ((client, node), (node, client)):
                try:
                    sender.do_handshake()
                except SSL.WantReadError:
                    pass
                except Exception:
                    return False
                try:
                    receiver.bio_write(sender.bio_read(1 << 16))
                except SSL.WantReadError:
                    pass
        return client.get_peer_certificate() is not None

    def test_named(self) -> None:
        """A certificate for the requested name or address is accepted."""
        for host in ("node.example", "10.0.0.1"):
            self.assertTrue(self.is_accepted(host), host)

    def test_others(self) -> None:
        """A certificate for another host, or without any host, is refused."""
        for host in ("other.example", "10.0.0.2", "::1"):
            self.assertFalse(self.is_accepted(host), host)
        self.assertFalse(self.is_accepted("node.example", names=[]))

    def test_unchecked(self) -> None:
        """Host names and issuers are checked only if the options require it."""
        self.assertTrue(self.is_accepted("other.example", check_hostname=False))
        self.assertFalse(self.is_accepted("node.example", trusted=False))
        self.assertFalse(self.is_accepted("x", trusted=False, check_hostname=False))
        self.assertTrue(self.is_accepted("x", trusted=False, verify=False))
