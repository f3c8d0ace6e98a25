"""Credentials of a connection to NATS: who it says that it is, and how it proves that.

A file of credentials is one of:

| content                                      | proof                                                                |
|----------------------------------------------|----------------------------------------------------------------------|
| an nkey seed (`SU…`)                         | a signature of the server's nonce                                    |
| a certificate and its private key, PEM       | the same, with the certificate as token (checked by the auth callout) |
| `{"user": …, "password": …}`                 | the password                                                         |
| a kubeconfig whose token is that             | the password                                                         |

A file is read anew for every attempt to connect: what was renewed is used at once.
"""

import base64
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from gardenbus.common.api.decoding import decode_json
from gardenbus.common.api.identity.issued_credentials import login_in
from gardenbus.common.api.identity.names import carried, certified
from gardenbus.common.api.identity.permissions import IMPORTED_JETSTREAM_API, JETSTREAM_API
from gardenbus.common.api.identity.principals import Principal
from gardenbus.common.errors import BadRequest, SettingsInvalid

if TYPE_CHECKING:
    from cryptography import x509

_CERTIFICATE = b"-----BEGIN CERTIFICATE-----"


class Login(msgspec.Struct, frozen=True):
    """A user with a password."""

    user: str
    password: str


class Credentials(NamedTuple):
    """Proof that a connection sends, and the subjects that are its own; `NO_CREDENTIALS` is nobody in particular."""

    principal: Principal | None = None
    file: Path | None = None

    inbox: str = "_INBOX"
    """Prefix of its reply subjects."""

    jetstream_api: str = JETSTREAM_API
    """Prefix of JetStream's API in its account."""

    login: Callable[[], Login] | None = None
    token: Callable[[], str] | None = None
    sign: Callable[[str], bytes] | None = None
    """The signature of a nonce, base64."""

    nkey: str | None = None
    """The public key that signs."""

    expires: Callable[[], datetime | None] = lambda: None
    """End of the certificate that is in its file now; None without one."""

    ca: str | None = None
    """File of the authorities that the server's certificate may be of, PEM; None: those of the system."""

    @property
    def is_outsider(self) -> bool:
        """True for somebody outside the services."""
        return self.principal is not None and self.principal.account == "OUT"

    def __str__(self) -> str:
        """For people: whose they are, and where they lie."""
        user = self.principal.user if self.principal is not None else "nobody"
        return f"{user} ({self.file or 'no credentials'})"


NO_CREDENTIALS = Credentials()


def read_credentials(file: Path, owner: str | Principal, ca: str | None = None) -> Credentials:
    """Credentials from a file. `owner`, a service by default, is the principal of an nkey, which names none.

    Raises SettingsInvalid, naming the file.
    """
    content = _content(file)
    try:
        return _read(file, content, owner, ca)._replace(file=file)
    except BadRequest as error:
        raise SettingsInvalid((f"{file}: {error.message}",)) from error


def _read(file: Path, content: bytes, owner: str | Principal, ca: str | None) -> Credentials:
    if _CERTIFICATE in content:
        return _with_certificate(file, content, ca)
    if (login := login_in(content)) is not None:
        user = _login(login).user
        return _of(carried(user), ca)._replace(login=lambda: _login(login_in(_content(file)) or b""))
    return _with_nkey(content, Principal("service", owner) if isinstance(owner, str) else owner, ca)


def login_credentials(login: Login, ca: str | None = None) -> Credentials:
    """Credentials of a user with a password. Raises BadRequest for an impossible name."""
    return _of(carried(login.user), ca)._replace(login=lambda: login)


def _of(principal: Principal, ca: str | None) -> Credentials:
    is_insider = principal.account == "GARDEN"
    api = JETSTREAM_API if is_insider else IMPORTED_JETSTREAM_API
    return Credentials(principal, inbox=principal.inbox, jetstream_api=api, ca=ca)


def _with_nkey(content: bytes, principal: Principal, ca: str | None) -> Credentials:
    from gardenbus.common.api.identity.nkeys import key_pair  # noqa: PLC0415  (the client starts without it)

    pair = key_pair(content.decode("ascii", "replace").strip())

    def sign(nonce: str) -> bytes:
        return base64.b64encode(pair.sign(nonce.encode()))

    return _of(principal, ca)._replace(nkey=pair.public, sign=sign)


def _with_certificate(file: Path, content: bytes, ca: str | None) -> Credentials:
    return certificate_credentials(file, _certified(_certificate(content)), ca)


def certificate_credentials(file: Path, principal: Principal, ca: str | None) -> Credentials:
    """Credentials of a principal from a file with its certificate and key, which need not be there yet."""
    from cryptography.hazmat.primitives import hashes, serialization  # noqa: PLC0415
    from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415

    def token() -> str:
        return base64.b64encode(_certificate(_content(file)).public_bytes(serialization.Encoding.DER)).decode()

    def sign(nonce: str) -> bytes:
        try:
            key = serialization.load_pem_private_key(_content(file), None)
        except (ValueError, TypeError) as error:
            raise BadRequest(f"{file}: the private key cannot be read: {error}") from error
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise BadRequest(f"{file}: the private key is not of an elliptic curve")
        return base64.b64encode(key.sign(nonce.encode(), ec.ECDSA(hashes.SHA256())))

    def expires() -> datetime:
        return _certificate(_content(file)).not_valid_after_utc

    return _of(principal, ca)._replace(file=file, token=token, sign=sign, expires=expires)


def _certificate(content: bytes) -> "x509.Certificate":
    from cryptography import x509  # noqa: PLC0415

    try:
        return x509.load_pem_x509_certificate(content)
    except ValueError as error:
        raise BadRequest(f"the certificate cannot be read: {error}") from error


def _certified(certificate: "x509.Certificate") -> Principal:
    from cryptography.x509.oid import NameOID  # noqa: PLC0415

    names = [str(each.value) for each in certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
    organizations = certificate.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
    return certified("".join(names), tuple(str(each.value) for each in organizations))


def _login(content: bytes) -> Login:
    try:
        return decode_json(content, Login)
    except msgspec.MsgspecError as error:
        raise BadRequest(f'write {{"user": …, "password": …}}: {error}') from error


def _content(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise SettingsInvalid((f"{file}: {error.strerror}",)) from error
