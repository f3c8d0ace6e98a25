"""The landscape's certificate authority, certificates of principals and servers, and their signing requests.

Keys are ECDSA P-256. Lives are Gardener's where it has any (30 days for a gardenlet's client certificate).
"""

import hashlib
import ipaddress
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, ExtensionOID, NameOID

from gardenbus.common.api.identity.names import certified
from gardenbus.common.api.identity.principals import Principal, common_name, organization
from gardenbus.common.errors import BadRequest

CA_LIFE = timedelta(days=3650)
SERVER_LIFE = timedelta(days=365)
CLIENT_LIFE = timedelta(days=30)
LEAST_CLIENT_LIFE = timedelta(minutes=1)
MOST_CLIENT_LIFE = timedelta(days=365)
CLOCK_SKEW = timedelta(minutes=5)
"""Certificates begin so much earlier: clocks that differ by this much are no reason to reject."""

PrivateKey = ec.EllipticCurvePrivateKey

_LEAST_USE = timedelta(seconds=1)
"""Of a key whose certificate has ended when it is made: a period that ends before it begins cannot be written."""


class Issued(NamedTuple):
    """A certificate, and the private key that belongs to it, both PEM."""

    certificate: bytes
    key: bytes


def new_key() -> PrivateKey:
    """A new private key."""
    return ec.generate_private_key(ec.SECP256R1())


def key_pem(key: PrivateKey) -> bytes:
    """A private key as PEM (PKCS #8)."""
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def read_key(pem: bytes) -> PrivateKey:
    """A private key. Raises BadRequest when it is none, or of another kind."""
    try:
        key = serialization.load_pem_private_key(pem, None)
    except (ValueError, TypeError) as error:
        raise BadRequest(f"the private key cannot be read: {error}") from error
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise BadRequest("the private key is not of an elliptic curve")
    return key


def read_certificate(pem: bytes) -> x509.Certificate:
    """A certificate. Raises BadRequest when it is none."""
    try:
        return x509.load_pem_x509_certificate(pem)
    except ValueError as error:
        raise BadRequest(f"the certificate cannot be read: {error}") from error


def new_authority(name: str, now: datetime, life: timedelta = CA_LIFE) -> Issued:
    """A new certificate authority."""
    key = new_key()
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    builder = (
        _builder(subject, subject, key.public_key(), now, life)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
    return Issued(_pem(builder.sign(key, hashes.SHA256())), key_pem(key))


class Authority:
    """Signs with a certificate authority. Raises BadRequest at once when certificate or key cannot be read."""

    def __init__(self, issued: Issued) -> None:
        self.certificate = read_certificate(issued.certificate)
        self._key = read_key(issued.key)

    def client(self, principal: Principal, now: datetime, life: timedelta = CLIENT_LIFE) -> Issued:
        """A certificate and its new key, for a principal."""
        key = new_key()
        signed = self._signed_client(_subject(principal), key.public_key(), now, life)
        return Issued(_pem(signed), key_pem(key))

    def sign_request(self, pem: bytes, now: datetime, life: timedelta = CLIENT_LIFE) -> bytes:
        """The certificate for a signing request. Raises BadRequest when the request is not sound."""
        request = read_request(pem)
        life = min(max(life, LEAST_CLIENT_LIFE), MOST_CLIENT_LIFE, self.certificate.not_valid_after_utc - now)
        return _pem(self._signed_client(request.subject, request.public_key(), now, life))

    def server(self, names: Sequence[str], now: datetime, life: timedelta = SERVER_LIFE) -> Issued:
        """A certificate and its new key, for a server that is reached by these names and addresses."""
        key = new_key()
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0])])
        builder = (
            self._issued(subject, key.public_key(), now, life)
            .add_extension(x509.SubjectAlternativeName([_general_name(name) for name in names]), critical=False)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        )
        return Issued(_pem(builder.sign(self._key, hashes.SHA256())), key_pem(key))

    def certificate_for(
        self,
        common_name: str,
        now: datetime,
        *,
        organizations: Sequence[str] = (),
        hosts: Sequence[str] = (),
        life: timedelta = CLIENT_LIFE,
    ) -> Issued:
        """A certificate and its new key, for a client; with `hosts` for a server that is reached by them, too."""
        key = new_key()
        subject = x509.Name(
            [
                *(x509.NameAttribute(NameOID.ORGANIZATION_NAME, each) for each in organizations),
                x509.NameAttribute(NameOID.COMMON_NAME, common_name),
            ]
        )
        usages = [ExtendedKeyUsageOID.CLIENT_AUTH, *([ExtendedKeyUsageOID.SERVER_AUTH] if hosts else [])]
        builder = self._issued(subject, key.public_key(), now, life).add_extension(
            x509.ExtendedKeyUsage(usages), critical=False
        )
        if hosts:
            names = [_general_name(host) for host in hosts]
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        return Issued(_pem(builder.sign(self._key, hashes.SHA256())), key_pem(key))

    def _signed_client(self, subject: x509.Name, key: object, now: datetime, life: timedelta) -> x509.Certificate:
        use = x509.PrivateKeyUsagePeriod(now, now + max(life, _LEAST_USE))  # see `issued_at`
        builder = (
            self._issued(subject, key, now, life)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
            .add_extension(use, critical=False)
        )
        return builder.sign(self._key, hashes.SHA256())

    def _issued(self, subject: x509.Name, key: object, now: datetime, life: timedelta) -> x509.CertificateBuilder:
        return (
            _builder(subject, self.certificate.subject, key, now, life)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs_certificates=False), critical=True)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
        )


def new_request(principal: Principal, key: PrivateKey) -> bytes:
    """A signing request of a principal for its own name, PEM."""
    builder = x509.CertificateSigningRequestBuilder().subject_name(_subject(principal))
    return builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def read_request(pem: bytes) -> x509.CertificateSigningRequest:
    """A signing request. Raises BadRequest unless it is signed by the key that it names."""
    try:
        request = x509.load_pem_x509_csr(pem)
        sound = request.is_signature_valid
    except (ValueError, TypeError) as error:
        raise BadRequest(f"the certificate signing request cannot be read: {error}") from error
    if not sound:
        raise BadRequest("the certificate signing request was not signed by its own key")
    if not isinstance(request.public_key(), ec.EllipticCurvePublicKey):
        raise BadRequest("the certificate signing request is not for a key of an elliptic curve")
    return request


def requested_principal(pem: bytes) -> Principal:
    """The principal that a signing request is for. Raises BadRequest.

    It may request nothing else, as in Gardener (`IsSeedClientCert`): no second organization, no alternative names.
    """
    request = read_request(pem)
    if len(request.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)) > 1:
        raise BadRequest("the certificate signing request names more than one organization (O)")
    try:
        has_others = any(True for each in request.extensions if each.oid == ExtensionOID.SUBJECT_ALTERNATIVE_NAME)
    except (ValueError, x509.DuplicateExtension, x509.UnsupportedGeneralNameType) as error:
        raise BadRequest(f"the certificate signing request cannot be read: {error}") from error
    if has_others:
        raise BadRequest("the certificate signing request has alternative names, which must be empty")
    return _principal_of_name(request.subject)


def key_digest(pem: bytes) -> str:
    """The SHA-256 of the public key of a signing request, hexadecimal. Raises BadRequest."""
    key = read_request(pem).public_key()
    return hashlib.sha256(
        key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    ).hexdigest()


def certified_principal(
    certificate: x509.Certificate, authorities: Sequence[x509.Certificate], now: datetime
) -> Principal:
    """The principal of a client certificate. Raises BadRequest: of another authority, expired, or not for clients."""
    if not any(is_issued_by(certificate, authority) for authority in authorities):
        raise BadRequest("the certificate is not of this landscape's authority")
    if now >= certificate.not_valid_after_utc:
        raise BadRequest(f"the certificate expired at {certificate.not_valid_after_utc.isoformat()}")
    if now < certificate.not_valid_before_utc:
        raise BadRequest(f"the certificate begins at {certificate.not_valid_before_utc.isoformat()}: a clock is wrong")
    try:
        usages = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    except x509.ExtensionNotFound as error:
        raise BadRequest("the certificate is not for clients") from error
    if ExtendedKeyUsageOID.CLIENT_AUTH not in usages:
        raise BadRequest("the certificate is not for clients")
    return principal_of_subject(certificate)


def issued_at(certificate: x509.Certificate) -> datetime:
    """Time of issue of a certificate: its key's usage period begins then, and it a little earlier.

    One that was made elsewhere has no such period, and counts as issued when it begins, so that a revocation by name
    that comes after it takes it in.
    """
    try:
        period = certificate.extensions.get_extension_for_class(x509.PrivateKeyUsagePeriod).value
    except x509.ExtensionNotFound:
        return certificate.not_valid_before_utc
    begins = period.not_before
    return begins.replace(tzinfo=UTC) if begins is not None else certificate.not_valid_before_utc


def serial_of(certificate: x509.Certificate) -> str:
    """A certificate's serial number as lists of revocations write it: lower-case hexadecimal."""
    return format(certificate.serial_number, "x")


def names_of(certificate: x509.Certificate) -> set[str]:
    """The names and addresses of a server's certificate."""
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return set()
    addresses = {str(address) for address in names.get_values_for_type(x509.IPAddress)}
    return addresses | set(names.get_values_for_type(x509.DNSName))


def is_issued_by(certificate: x509.Certificate, authority: x509.Certificate) -> bool:
    """True if an authority has signed a certificate."""
    try:
        certificate.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def signing_pair(certificates: bytes, key: bytes) -> Issued:
    """The certificate that a key belongs to, of several in PEM, with the key. Raises BadRequest when there is none."""
    private = read_key(key)
    try:
        there = x509.load_pem_x509_certificates(certificates)
    except ValueError as error:
        raise BadRequest(f"the certificate cannot be read: {error}") from error
    for certificate in there:
        if belong_together(certificate, private):
            return Issued(_pem(certificate), key)
    raise BadRequest("the key belongs to none of the certificates: restore the one that does")


def principal_of_subject(certificate: x509.Certificate) -> Principal:
    """The principal that a certificate names, whoever signed it. Raises BadRequest."""
    return _principal_of_name(certificate.subject)


def belong_together(certificate: x509.Certificate, key: PrivateKey) -> bool:
    """True if a certificate is for this key."""
    public = certificate.public_key()
    return isinstance(public, ec.EllipticCurvePublicKey) and public == key.public_key()


def _principal_of_name(name: x509.Name) -> Principal:
    names = [str(attribute.value) for attribute in name.get_attributes_for_oid(NameOID.COMMON_NAME)]
    organizations = tuple(str(each.value) for each in name.get_attributes_for_oid(NameOID.ORGANIZATION_NAME))
    if len(names) != 1:
        raise BadRequest(f"a certificate of a principal has one CN, not {len(names)}")
    return certified(names[0], organizations)


def _subject(principal: Principal) -> x509.Name:
    return x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization(principal)),
            x509.NameAttribute(NameOID.COMMON_NAME, common_name(principal)),
        ]
    )


def _builder(
    subject: x509.Name, issuer: x509.Name, key: object, now: datetime, life: timedelta
) -> x509.CertificateBuilder:
    if not isinstance(key, ec.EllipticCurvePublicKey):
        raise BadRequest("the key is not of an elliptic curve")
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCK_SKEW)
        .not_valid_after(now + life)
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=not signs_certificates,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)
