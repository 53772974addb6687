"""A certificate authority for secure servers in tests."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

NOW = datetime.now(UTC)


@dataclass(frozen=True)
class Authority:
    """Signs certificates."""

    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate

    @classmethod
    def make(cls) -> Authority:
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Authority of the tests")])
        builder = _builder(name, name, key, NOW + timedelta(days=1))
        usage = x509.KeyUsage(False, False, False, False, False, True, True, False, False)
        signed = (
            builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(usage, critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .sign(key, hashes.SHA256())
        )
        return cls(key, signed)

    def context(self, folder: Path, *names: x509.GeneralName, until: datetime) -> ssl.SSLContext:
        """A server's TLS context with a certificate for these names."""
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Site of the tests")])
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key())
        signed = (
            _builder(name, self.certificate.subject, key, until)
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            .add_extension(issuer, critical=False)
            .sign(self.key, hashes.SHA256())
        )
        path = folder / "site.pem"
        secret = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        path.write_bytes(secret + signed.public_bytes(serialization.Encoding.PEM))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(path)
        return context


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, until: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(NOW - timedelta(days=2))
        .not_valid_after(until)
    )
