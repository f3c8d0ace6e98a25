"""The keys of a landscape that makes its own: made once, kept, and repaired when their making was cut short.

    ca.crt, ca.key              the certificate authority
    server.crt, server.key      NATS' certificate
    issuer.nk                   the account key that signs the auth callout's responses
    callout.nk, system.nk       the user who responds to callouts, and the system account's
    services/<name>.nk          each service's
    operator.json               the operator's user name and password

Directories are 0700 and files 0600 from the moment that they exist. A key is written before its certificate: a
certificate without its key was not cut short but taken apart, and is not replaced.
"""

import secrets
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import msgspec
from cryptography import x509

from gardenbus.common.api.decoding import decode_json
from gardenbus.common.api.identity.nkeys import KeyPair, KeyPurpose, key_pair
from gardenbus.common.api.identity.principals import OPERATOR
from gardenbus.common.errors import BadRequest, SettingsInvalid
from gardenbus.credentials import secret_files
from gardenbus.credentials.certificates import (
    Authority,
    Issued,
    belong_together,
    is_issued_by,
    names_of,
    new_authority,
    read_certificate,
    read_key,
    signing_pair,
)
from gardenbus.credentials.new_nkeys import new_nkey

AUTHORITY_NAME = "gardenbus"
SERVER_RENEWED_BEFORE = timedelta(days=60)
"""A server's certificate that ends sooner is replaced at the start."""

LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")

_PASSWORD_BYTES = 32


class OperatorLogin(msgspec.Struct, frozen=True):
    """The operator's user name and password."""

    user: str
    password: str


class Identities(NamedTuple):
    """All that the server's configuration, the services and the operator need."""

    services: dict[str, KeyPair]
    system: KeyPair
    callout: KeyPair
    issuer: KeyPair
    operator: OperatorLogin


class IdentityDirectory:
    """Paths of the keys below a directory."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.authorities = path / "ca.crt"
        self.authority_key = path / "ca.key"
        self.server_certificate = path / "server.crt"
        self.server_key = path / "server.key"
        self.issuer = path / "issuer.nk"
        self.callout = path / "callout.nk"
        self.system = path / "system.nk"
        self.services = path / "services"
        self.operator = path / "operator.json"

    def service(self, name: str) -> Path:
        """File of a service's key."""
        return self.services / f"{name}.nk"

    def prepare(
        self, services: Iterable[str], now: datetime, server_names: Sequence[str] = LOOPBACK_NAMES
    ) -> Identities:
        """Make what is missing and read the rest. Raises SettingsInvalid for a file that cannot be read; OSError."""
        for directory in (self.path, self.services):
            secret_files.make_directory(directory)
            secret_files.tighten(directory.iterdir())
        self._prepare_certificates(server_names, now)
        return Identities(
            services={name: kept_nkey(self.service(name), "user") for name in services},
            system=kept_nkey(self.system, "user"),
            callout=kept_nkey(self.callout, "user"),
            issuer=kept_nkey(self.issuer, "account"),
            operator=kept_operator(self.operator),
        )

    def authority(self) -> Authority:
        """The authority that signs. Raises SettingsInvalid."""
        try:
            return Authority(signing_pair(_content(self.authorities), _content(self.authority_key)))
        except BadRequest as error:
            raise SettingsInvalid((f"{self.authorities}: {error.message}",)) from error

    def keep_server_certificate(self, names: Sequence[str], now: datetime) -> None:
        """Replace the server's certificate unless it is sound. Raises SettingsInvalid, OSError.

        Sound is one for these names, with its key, of an authority that is trusted, that does not end soon.
        """
        if not self._has_server_certificate(names, now, self._trusted()):
            self._issue_for_server(names, now)

    def replace_old_server_certificate(self, now: datetime) -> None:
        """Replace the server's certificate, where there is one, unless the authority that signs now has signed it.

        Raises SettingsInvalid, OSError.
        """
        if not self.server_certificate.exists():
            return
        try:
            names = sorted(names_of(read_certificate(_content(self.server_certificate))))
        except BadRequest as error:
            raise SettingsInvalid((f"{self.server_certificate}: {error.message}",)) from error
        if not self._has_server_certificate(names, now, [self.authority().certificate]):
            self._issue_for_server(names, now)

    def _prepare_certificates(self, server_names: Sequence[str], now: datetime) -> None:
        if not self.authorities.exists():
            _write_pair(new_authority(AUTHORITY_NAME, now), self.authorities, self.authority_key)
        self.keep_server_certificate(server_names, now)

    def _trusted(self) -> Sequence[x509.Certificate]:
        try:
            return x509.load_pem_x509_certificates(_content(self.authorities))
        except ValueError as error:
            raise SettingsInvalid((f"{self.authorities}: no certificate can be read: {error}",)) from error

    def _issue_for_server(self, names: Sequence[str], now: datetime) -> None:
        _write_pair(self.authority().server(names, now), self.server_certificate, self.server_key)

    def _has_server_certificate(
        self, names: Sequence[str], now: datetime, authorities: Sequence[x509.Certificate]
    ) -> bool:
        """True if the server has a certificate of one of the authorities, with its key, that ends late enough."""
        try:
            certificate = read_certificate(_content(self.server_certificate))
            key = read_key(_content(self.server_key))
        except (SettingsInvalid, BadRequest):
            return False
        return (
            belong_together(certificate, key)
            and any(is_issued_by(certificate, authority) for authority in authorities)
            and certificate.not_valid_after_utc - now > SERVER_RENEWED_BEFORE
            and set(names) <= names_of(certificate)
        )


def kept_operator(file: Path) -> OperatorLogin:
    """The operator's login in a file, which is made where there is none. Raises SettingsInvalid."""
    if not file.exists():
        made = OperatorLogin(OPERATOR, secrets.token_urlsafe(_PASSWORD_BYTES))
        secret_files.write(file, msgspec.json.encode(made))
    try:
        return decode_json(_content(file), OperatorLogin)
    except msgspec.MsgspecError as error:
        raise SettingsInvalid((f"{file}: {error}; remove it, and another password is made",)) from error


def kept_nkey(file: Path, purpose: KeyPurpose) -> KeyPair:
    """The key of a file, which is made where there is none. Raises SettingsInvalid."""
    if not file.exists():
        made = new_nkey(purpose)
        secret_files.write(file, made.seed.encode())
        return made
    try:
        return key_pair(_content(file).decode("ascii", "replace"))
    except BadRequest as error:
        raise SettingsInvalid((f"{file}: {error.message}; remove it, and another key is made",)) from error


def _write_pair(issued: Issued, certificate: Path, key: Path) -> None:
    secret_files.write(key, issued.key)
    secret_files.write(certificate, issued.certificate)


def _content(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise SettingsInvalid((f"{file}: {error.strerror}",)) from error
