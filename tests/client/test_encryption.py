"""TLS of the blocking and the asyncio client, and of the command line."""

from __future__ import annotations

import ssl
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.client import TLS
from disque_tx.client.encryption import ssl_context
from tests.services.net.certificates import Authority


class ContextTests(SynchronousTestCase):
    """The options as the standard library takes them."""

    def context(self, tls: TLS) -> tuple[ssl.VerifyMode, bool]:
        """Whether a certificate is wanted, and whether it must name the host."""
        context = ssl_context(tls)
        return context.verify_mode, context.check_hostname

    def test_checks(self) -> None:
        """Who does not turn a check off has it; without trust in the certificate, the name in it
        says nothing."""
        self.assertEqual((ssl.CERT_REQUIRED, True), self.context(TLS()))
        self.assertEqual((ssl.CERT_REQUIRED, False), self.context(TLS(check_hostname=False)))
        self.assertEqual((ssl.CERT_NONE, False), self.context(TLS(verify=False)))

    def test_version(self) -> None:
        """Versions of TLS that are known to be broken are not spoken."""
        self.assertGreaterEqual(ssl_context(TLS()).minimum_version, ssl.TLSVersion.TLSv1_2)

    def test_files(self) -> None:
        """The authority is trusted, and no other; a file that is missing is an error at once."""
        folder = Path(self.mktemp())
        folder.mkdir()
        authority = Authority(folder, "authority")
        certificate, key = authority.issue("client")
        context = ssl_context(TLS(authority.path, certificate, key))
        self.assertEqual(1, context.cert_store_stats()["x509_ca"])
        self.assertRaises(OSError, ssl_context, TLS(certificate_file="/nonexistent"))
        self.assertRaises(OSError, ssl_context, TLS("/nonexistent"))
