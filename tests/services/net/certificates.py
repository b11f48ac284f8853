"""Certificates for tests, generated on demand."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID


def _usage(is_ca: bool) -> x509.KeyUsage:
    """What the key may be used for: signing certificates, or authentication."""
    return x509.KeyUsage(not is_ca, False, False, False, False, is_ca, is_ca, False, False)


class Authority:
    """Signs certificates; its own and the signed ones are files in ``folder``. ``days``: how long
    they are valid; ``past_days``: for how long they have been."""

    def __init__(self, folder: Path, name: str) -> None:
        self.days = 100
        self.past_days = 100
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self.path = self._write(f"{name}.pem", self._signed(self._name, self._key, True))

    def _signed(self, subject: x509.Name, key: ec.EllipticCurvePrivateKey, is_ca: bool) -> bytes:
        now = datetime.now()
        certificate = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=self.past_days))
            .not_valid_after(now + timedelta(days=self.days))
            .add_extension(x509.BasicConstraints(ca=is_ca, path_length=None), critical=True)
            # Strict verification requires these; later Pythons are strict by default.
            .add_extension(_usage(is_ca), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), False
            )
            .sign(self._key, hashes.SHA256())
        )
        return certificate.public_bytes(Encoding.PEM)

    def _write(self, name: str, data: bytes) -> str:
        path = self._folder / name
        path.write_bytes(data)
        return str(path)

    def issue(self, name: str) -> tuple[str, str]:
        """Paths of a new certificate and of its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        text = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        return self._write(f"{name}.crt", self._signed(subject, key, False)), self._write(
            f"{name}.key", text
        )
