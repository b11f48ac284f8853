"""TLS between nodes: both sides present a certificate signed by the cluster's own authority.

Whoever has such a certificate belongs to the cluster, so host names are not checked. TLS 1.2 or
later. The files are read at the start, and again when the operator asks for it.
"""

from __future__ import annotations

import re
import socket
from typing import TYPE_CHECKING, Any, Final

from OpenSSL import SSL, crypto
from twisted.internet import ssl
from twisted.internet.interfaces import IProtocolFactory
from twisted.protocols.tls import TLSMemoryBIOFactory
from twisted.python.failure import Failure

from disque_tx.errors import ConfigError
from disque_tx.services.net.certificates import Identity, openssl_text

if TYPE_CHECKING:
    from disque_tx.config.settings import Settings

_CERTIFICATE: Final = re.compile(
    rb"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL
)


def tls_options(settings: Settings) -> ssl.CertificateOptions:
    """Certificates that both ends of a link present and require; ``ConfigError`` names the file
    that is wrong."""
    cert, key, ca = (
        settings.cluster_bus_tls_cert,
        settings.cluster_bus_tls_key,
        settings.cluster_bus_tls_ca,
    )
    if not (cert and key and ca):
        raise ConfigError(
            "cluster-bus-tls needs three files: cluster-bus-tls-cert, cluster-bus-tls-key and"
            " cluster-bus-tls-ca."
        )
    chain = _certificates("cluster-bus-tls-cert", cert)
    options = ssl.CertificateOptions(
        privateKey=_private_key(key),
        certificate=chain[0].original,
        extraCertChain=[certificate.original for certificate in chain[1:]],
        trustRoot=ssl.trustRootFromCertificates(_certificates("cluster-bus-tls-ca", ca)),
        raiseMinimumTo=ssl.TLSVersion.TLSv1_2,
    )
    try:
        options.getContext().check_privatekey()
    except SSL.Error as error:
        raise ConfigError(
            f"cluster-bus-tls-key {key} is not the key of cluster-bus-tls-cert {cert}."
        ) from error
    return options


def _read(directive: str, path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise ConfigError(f"{directive} {path} can't be read: {error.strerror}.") from error


def _certificates(directive: str, path: str) -> list[ssl.Certificate]:
    texts = _CERTIFICATE.findall(_read(directive, path))
    try:
        found = [ssl.Certificate.loadPEM(text) for text in texts]
    except (crypto.Error, ValueError) as error:
        raise ConfigError(f"{directive} {path} holds a damaged certificate.") from error
    if not found:
        raise ConfigError(f"{directive} {path} holds no certificate in PEM format.")
    return found


def _private_key(path: str) -> crypto.PKey:
    text = _read("cluster-bus-tls-key", path)
    try:
        return crypto.load_privatekey(crypto.FILETYPE_PEM, text, b"")
    except (crypto.Error, ValueError, TypeError) as error:
        raise ConfigError(
            f"cluster-bus-tls-key {path} holds no private key in PEM format without a password."
        ) from error


class TlsAdopter:
    """Serves connected sockets as the hub does, with TLS, on the transport that comes with
    Twisted. ``calling``: for connections made by this node."""

    def __init__(self, reactor: Any, identity: Identity, calling: bool) -> None:
        self._reactor = reactor
        self._identity = identity
        self._calling = calling

    def adopt(self, sock: socket.socket, factory: IProtocolFactory) -> bool:
        """Begin the handshake; ``False`` when the connection is gone already."""
        wrapped = TLSMemoryBIOFactory(self._identity, self._calling, factory, self._reactor)
        try:
            self._reactor.adoptStreamConnection(sock.fileno(), sock.family, wrapped)
        except OSError:
            return False
        finally:
            sock.close()  # the reactor has its own descriptor of it
        return True


def tls_trouble(reason: Failure) -> str:
    """Why TLS failed, in the words of its library."""
    return openssl_text(reason.value) or str(reason.value)
