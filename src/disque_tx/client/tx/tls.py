"""TLS for the Twisted client.

Twisted's own ``optionsForClientTLS`` is not used: it accepts a certificate that names no host at
all, as long as its issuer is trusted. Here such a certificate is refused.
"""

from __future__ import annotations

import re
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final

from OpenSSL import SSL, crypto
from service_identity.hazmat import DNS_ID, IPAddress_ID, verify_service_identity
from service_identity.pyopenssl import extract_patterns
from twisted.internet import ssl
from twisted.internet.interfaces import IOpenSSLClientConnectionCreator
from zope.interface import implementer

from disque_tx.client.options import TLS

_PEM: Final = re.compile(rb"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)


def creator(host: str, tls: TLS) -> Any:
    """Creates the client's side of TLS connections to this host.

    :raises OSError, ValueError: when a file cannot be used.
    """
    try:
        context = ssl.CertificateOptions(**_own(tls), **_trusted(tls)).getContext()
    except (SSL.Error, crypto.Error) as error:
        raise ValueError("a certificate or key of the client cannot be used") from error
    return _Creator(host, context, tls.verify and tls.check_hostname)


def _trusted(tls: TLS) -> dict[str, Any]:
    """The trusted certificates, as arguments of Twisted's options."""
    if not tls.verify:
        return {}
    if tls.ca_file is None:
        return {"trustRoot": ssl.platformTrust()}
    found = [ssl.Certificate.loadPEM(pem) for pem in certificates(tls.ca_file)]
    return {"trustRoot": ssl.trustRootFromCertificates(found)}


def _own(tls: TLS) -> dict[str, Any]:
    """The client's certificate and key, likewise; both may be in one file."""
    if tls.certificate_file is None:
        return {}
    key = Path(tls.key_file or tls.certificate_file).read_bytes()
    first, *others = [ssl.Certificate.loadPEM(pem) for pem in certificates(tls.certificate_file)]
    return {
        "privateKey": ssl.KeyPair.load(key, crypto.FILETYPE_PEM).original,
        "certificate": first.original,
        "extraCertChain": [certificate.original for certificate in others],
    }


@implementer(IOpenSSLClientConnectionCreator)
class _Creator:
    """``check_hostname``: whether the certificate of the node must name the host."""

    def __init__(self, host: str, context: SSL.Context, check_hostname: bool) -> None:
        self._context = context
        self._check_hostname = check_hostname
        try:
            self._identity: DNS_ID | IPAddress_ID = IPAddress_ID(str(ip_address(host)))
            self._server_name: bytes | None = None
        except ValueError:
            self._server_name = host.encode("idna")
            self._identity = DNS_ID(self._server_name.decode())

    def clientConnectionForTLS(self, tlsProtocol: Any) -> SSL.Connection:
        connection = SSL.Connection(self._context, None)
        if self._server_name is not None:
            connection.set_tlsext_host_name(self._server_name)
        if self._check_hostname:
            mode = SSL.VERIFY_PEER | SSL.VERIFY_FAIL_IF_NO_PEER_CERT
            connection.set_verify(mode, self._is_acceptable)
        return connection

    def _is_acceptable(
        self, connection: SSL.Connection, certificate: crypto.X509, error: int, depth: int, ok: int
    ) -> bool:
        """Called by OpenSSL for each certificate; an exception here refuses it as well."""
        if ok and depth == 0:
            verify_service_identity(extract_patterns(certificate), [self._identity], [])
        return bool(ok)


def certificates(path: str) -> list[bytes]:
    """The certificates of a file, each as PEM.

    :raises OSError: when it cannot be read.
    :raises ValueError: when there is none in it.
    """
    found = _PEM.findall(Path(path).read_bytes())
    if not found:
        raise ValueError(f"{path} holds no certificate in PEM")
    return found
