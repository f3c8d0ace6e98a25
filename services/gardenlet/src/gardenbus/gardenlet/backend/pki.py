"""Certificate authorities and keys of a shoot, and the files that are made of them.

Authorities and the service account key are made once, and go with the shoot. Certificates are made of them where the
control plane runs, and anew once most of their life is over; components read the files again by themselves.
"""

import base64
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import yaml
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from gardenbus.agent.files import make_directory, replace_file
from gardenbus.common.api.document import Document
from gardenbus.common.errors import BadRequest
from gardenbus.credentials.certificates import Authority, Issued, new_authority, read_certificate
from gardenbus.gardenlet.domain.control_plane import (
    AUTHORITIES,
    CA,
    LEAF_LIFE,
    MASTERS,
    SERVICE_ACCOUNT_KEY,
    WantedCertificate,
    kubeconfig,
)

_RSA_BITS = 2048

RENEWED_AT = 0.8
"""Share of its validity after which a certificate of a control plane is renewed."""

Secrets = Mapping[str, Any]
"""Certificate (PEM) and key of each authority, and the service account key, by their names."""


def new_secrets(technical_id: str, now: datetime) -> Document:
    """Make the authorities and the service account key of a shoot. Takes a tenth of a second of a processor."""
    made: Document = {}
    for name in AUTHORITIES:
        issued = new_authority(f"{name} of {technical_id}", now)
        made[name] = {"certificate": issued.certificate.decode(), "key": issued.key.decode()}
    key = rsa.generate_private_key(public_exponent=65537, key_size=_RSA_BITS)
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    made[SERVICE_ACCOUNT_KEY] = {"key": pem.decode()}
    return made


def authority_of(secrets: Secrets, name: str) -> Authority:
    """One of the authorities. Raises BadRequest when it is missing, or cannot be read."""
    pair = secrets.get(name)
    if pair is None:
        raise BadRequest(f"the shoot has no certificate authority {name}")
    return Authority(Issued(str(pair.get("certificate")).encode(), str(pair.get("key")).encode()))


def write_keys(directory: Path, secrets: Secrets, wanted: Iterable[WantedCertificate], now: datetime) -> list[str]:
    """Write whatever is missing, does not fit or is to be renewed; returns the names of the certificates issued."""
    make_directory(directory)
    for name in AUTHORITIES:
        _write(directory / f"{name}.crt", str(secrets[name]["certificate"]))
    _write(directory / f"{CA}.key", str(secrets[CA]["key"]))
    _write(directory / f"{SERVICE_ACCOUNT_KEY}.key", str(secrets[SERVICE_ACCOUNT_KEY]["key"]))
    issued: list[str] = []
    for each in wanted:
        authority = authority_of(secrets, each.authority)
        file = directory / f"{each.name}.crt"
        if (directory / f"{each.name}.key").exists() and _fits(file, authority, each, now):
            continue
        pair = authority.certificate_for(
            each.common_name, now, organizations=each.organizations, hosts=each.hosts, life=LEAF_LIFE
        )
        replace_file(directory / f"{each.name}.key", pair.key)
        replace_file(file, pair.certificate)
        issued.append(each.name)
    return issued


def write_kubeconfig(directory: Path, name: str, server: str) -> None:
    """Write `<name>.kubeconfig`, which names the certificate's files, so that a renewed one is used at once."""
    config = kubeconfig(
        server=server,
        name=name,
        user={"client-certificate": str(directory / f"{name}.crt"), "client-key": str(directory / f"{name}.key")},
        authority={"certificate-authority": str(directory / f"{CA}.crt")},
    )
    _write(directory / f"{name}.kubeconfig", yaml.safe_dump(config, sort_keys=False))


def admin_certificate(secrets: Secrets, user: str, now: datetime, life: timedelta) -> Issued:
    """A client certificate of somebody who may do everything in the shoot, for a while."""
    return authority_of(secrets, CA).certificate_for(user, now, organizations=(MASTERS,), life=life)


def admin_kubeconfig(secrets: Secrets, *, name: str, server: str, user: str, now: datetime, life: timedelta) -> str:
    """A kubeconfig with such a certificate, as YAML; it needs no file beside it."""
    issued = admin_certificate(secrets, user, now, life)
    config = kubeconfig(
        server=server,
        name=name,
        user={"client-certificate-data": _base64(issued.certificate), "client-key-data": _base64(issued.key)},
        authority={"certificate-authority-data": _base64(str(secrets[CA]["certificate"]).encode())},
    )
    return yaml.safe_dump(config, sort_keys=False)


def _base64(pem: bytes) -> str:
    return base64.b64encode(pem).decode()


def _fits(file: Path, authority: Authority, wanted: WantedCertificate, now: datetime) -> bool:
    try:
        certificate = read_certificate(file.read_bytes())
        certificate.verify_directly_issued_by(authority.certificate)
    except (OSError, ValueError, TypeError, BadRequest, InvalidSignature):
        return False
    begins_at, ends_at = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    return now < begins_at + RENEWED_AT * (ends_at - begins_at) and _hosts(certificate) >= set(wanted.hosts)


def _hosts(certificate: x509.Certificate) -> set[str]:
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return set()
    return {*names.get_values_for_type(x509.DNSName), *map(str, names.get_values_for_type(x509.IPAddress))}


def _write(file: Path, text: str) -> None:
    content = text.encode()
    if not file.exists() or file.read_bytes() != content:
        replace_file(file, content)
