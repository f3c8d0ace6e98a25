"""Whoever shows a certificate, an nkey or a password is who it belongs to, and nobody else."""

import base64
import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from gardenbus.common.api.document import encode
from gardenbus.common.api.identity.issued_credentials import IssuedCredentials, read_credentials
from gardenbus.common.api.identity.principals import Principal
from gardenbus.common.api.identity.revocations import Revocations
from gardenbus.common.api.keys import Subjects
from gardenbus.common.errors import BadRequest, Forbidden
from gardenbus.credentials.certificates import (
    Authority,
    Issued,
    key_pem,
    new_authority,
    new_key,
    read_certificate,
    read_key,
    serial_of,
)
from gardenbus.credentials.new_nkeys import new_nkey
from gardenbus.identity.domain.authentication import Authenticated, Facts, authenticate, grant
from gardenbus.identity.domain.tokens import AuthorizationRequest, ClientInfo, ConnectOptions, ServerId

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
NONCE = "a nonce of the server"
GARDENLET = Principal("gardenlet", "aws-cork")
ISSUED_AUTHORITY = new_authority("gardenbus", NOW)
AUTHORITY = Authority(ISSUED_AUTHORITY)
NAMESAKE = Authority(new_authority("gardenbus", NOW))
"""Another authority of the same name."""


def facts(
    *issued: IssuedCredentials, revoked: Mapping[str, datetime | None] | None = None, now: datetime = NOW
) -> Facts:
    by_name: Mapping[str, list[IssuedCredentials]] = {}
    for each in issued:
        by_name.setdefault(each.nkey or each.principal.user, []).append(each)  # pyright: ignore[reportAttributeAccessIssue]
    return Facts((AUTHORITY.certificate,), by_name, Revocations(revoked or {}), now)


def request(**options: str) -> AuthorizationRequest:
    return AuthorizationRequest(ServerId("N"), "U", ClientInfo(nonce=NONCE), ConnectOptions(**options))


def shown(issued: Issued, nonce: str = NONCE, key: bytes | None = None) -> AuthorizationRequest:
    token = base64.b64encode(read_certificate(issued.certificate).public_bytes(Encoding.DER)).decode()
    signature = read_key(key or issued.key).sign(nonce.encode(), ec.ECDSA(hashes.SHA256()))
    return request(auth_token=token, sig=base64.urlsafe_b64encode(signature).decode().rstrip("="))


def test_a_certificate_and_a_signature_of_the_nonce_prove_a_gardenlet() -> None:
    issued = AUTHORITY.client(GARDENLET, NOW, timedelta(days=1))
    found = authenticate(shown(issued), facts())
    assert found.principal == GARDENLET
    assert found.expires == NOW + timedelta(days=1)


def test_a_certificate_counts_until_its_end() -> None:
    issued = AUTHORITY.client(GARDENLET, NOW, timedelta(days=1))
    with pytest.raises(Forbidden, match="the certificate expired at"):
        authenticate(shown(issued), facts(now=NOW + timedelta(hours=25)))


@pytest.mark.parametrize("minutes", [6, 360])
def test_beyond_five_minutes_the_error_names_the_clock(minutes: int) -> None:
    issued = AUTHORITY.client(GARDENLET, NOW, timedelta(days=1))
    with pytest.raises(Forbidden, match=r"the certificate begins at .*: a clock is wrong"):
        authenticate(shown(issued), facts(now=NOW - timedelta(minutes=minutes)))


def test_a_clock_may_be_five_minutes_late() -> None:
    issued = AUTHORITY.client(GARDENLET, NOW, timedelta(days=1))
    assert authenticate(shown(issued), facts(now=NOW - timedelta(minutes=4))).principal == GARDENLET


def test_a_certificate_of_an_authority_of_the_same_name_is_refused() -> None:
    with pytest.raises(Forbidden, match="not of this landscape's authority"):
        authenticate(shown(NAMESAKE.client(GARDENLET, NOW)), facts())


def test_a_stolen_certificate_is_of_no_use_without_its_key() -> None:
    issued, own = AUTHORITY.client(GARDENLET, NOW), AUTHORITY.client(Principal("gardenlet", "evil"), NOW)
    with pytest.raises(Forbidden, match="not signed with the certificate's key"):
        authenticate(shown(issued, key=own.key), facts())


def test_what_was_overheard_is_of_no_use_with_another_nonce() -> None:
    with pytest.raises(Forbidden, match="not signed with the certificate's key"):
        authenticate(shown(AUTHORITY.client(GARDENLET, NOW), nonce="an earlier one"), facts())


def test_a_certificate_for_a_server_is_none_of_a_client() -> None:
    with pytest.raises(Forbidden, match="not for clients"):
        authenticate(shown(AUTHORITY.server(["localhost"], NOW)), facts())


def test_a_certificate_of_the_authority_itself_lets_nobody_in() -> None:
    with pytest.raises(Forbidden):
        authenticate(shown(new_authority("gardenbus", NOW)), facts())


@pytest.mark.parametrize("named", ["user", "serial"])
def test_revoked_credentials_let_nobody_in(named: str) -> None:
    issued = AUTHORITY.client(GARDENLET, NOW)
    name = {"user": GARDENLET.user, "serial": serial_of(read_certificate(issued.certificate))}[named]
    with pytest.raises(Forbidden, match="revoked"):
        authenticate(shown(issued), facts(revoked={name: None}))


def test_a_password_is_checked_against_its_digest() -> None:
    ann = IssuedCredentials(Principal("user", "ann"), NOW + timedelta(hours=1), hashlib.sha256(b"long").hexdigest())
    assert authenticate(request(user="ann", password="long"), facts(ann)).principal.user == "ann"
    for options in ({"user": "ann", "password": "short"}, {"user": "bob", "password": "long"}, {"user": "ann"}):
        with pytest.raises(Forbidden, match="wrong"):
            authenticate(request(**options), facts(ann))
    with pytest.raises(Forbidden, match="expired"):
        authenticate(request(user="ann", password="long"), facts(ann, now=NOW + timedelta(hours=1)))


def test_an_nkey_signs_the_nonce() -> None:
    pair = new_nkey("user")
    mine = IssuedCredentials(Principal("scheduler", "mine"), NOW + timedelta(hours=1), nkey=pair.public)

    def signed(nonce: str) -> AuthorizationRequest:
        signature = base64.b64encode(pair.sign(nonce.encode())).decode()
        return request(nkey=pair.public, sig=signature)

    assert authenticate(signed(NONCE), facts(mine)).principal == Principal("scheduler", "mine")
    with pytest.raises(Forbidden, match="not signed"):
        authenticate(signed("another"), facts(mine))
    with pytest.raises(Forbidden, match="not known"):
        authenticate(signed(NONCE), facts())


@pytest.mark.parametrize(
    "options", [{}, {"auth_token": "junk"}, {"auth_token": "a" * 5000, "sig": "?"}, {"nkey": "U", "sig": "x"}]
)
def test_anything_else_is_nobody(options: dict[str, str]) -> None:
    with pytest.raises(Forbidden):
        authenticate(request(**options), facts())


def test_a_session_ends_with_the_credential_or_before() -> None:
    ends = NOW + timedelta(minutes=10)
    found = grant(Authenticated(GARDENLET, ends), Subjects(), NOW, timedelta(hours=1))
    assert (found.account, found.expires) == ("OUT", int(ends.timestamp()))
    found = grant(Authenticated(GARDENLET, NOW + timedelta(days=30)), Subjects(), NOW, timedelta(hours=1))
    assert found.expires == int((NOW + timedelta(hours=1)).timestamp())


@pytest.mark.parametrize(
    "principal",
    [Principal("service", "relay"), Principal("operator", "operator"), Principal("user", "controllermanager")],
)
def test_nobody_becomes_a_service_by_the_callout(principal: Principal) -> None:
    with pytest.raises(Forbidden):
        grant(Authenticated(principal, NOW + timedelta(days=1)), Subjects(), NOW, timedelta(hours=1))


def secret(**data: str) -> bytes:
    encoded = {name: base64.b64encode(value.encode()).decode() for name, value in data.items()}
    return encode({"apiVersion": "v1", "kind": "Secret", "data": encoded})


def test_issued_credentials_are_read_from_their_secret() -> None:
    found = read_credentials(secret(user="member:paris", expires="2026-03-02T00:00:00Z", sha256="ab"))
    assert found == IssuedCredentials(Principal("member-agent", "paris"), datetime(2026, 3, 2, tzinfo=UTC), "ab")


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"user": "ann"},
        {"user": "ann", "expires": "soon"},
        {"user": "operator", "expires": "2026-03-02"},
        {"user": "*", "expires": "2026-03-02"},
    ],
)
def test_a_secret_that_makes_no_sense_names_the_field(data: Any) -> None:
    with pytest.raises(BadRequest, match=r"data|user"):
        read_credentials(secret(**data))


def made_elsewhere(begins: datetime) -> Issued:
    """A certificate that somebody signed by hand with the authority's key."""
    key = new_key()
    names = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, "gardener.cloud:system:seeds")]
    names.append(x509.NameAttribute(NameOID.COMMON_NAME, "gardener.cloud:system:seed:aws-cork"))
    certificate = (
        x509.CertificateBuilder()
        .subject_name(x509.Name(names))
        .issuer_name(AUTHORITY.certificate.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begins)
        .not_valid_after(NOW + timedelta(days=1))
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
        .sign(read_key(ISSUED_AUTHORITY.key), hashes.SHA256())
    )
    return Issued(certificate.public_bytes(Encoding.PEM), key_pem(key))


def test_a_revocation_by_name_takes_in_what_was_made_elsewhere_and_begins_at_once() -> None:
    revoked = {GARDENLET.user: NOW + timedelta(seconds=1)}
    later = NOW + timedelta(seconds=2)
    found = authenticate(shown(made_elsewhere(NOW)), facts(now=later))
    assert found.principal == GARDENLET
    with pytest.raises(Forbidden, match="revoked"):
        authenticate(shown(made_elsewhere(NOW)), facts(revoked=revoked, now=later))


def test_what_is_issued_after_a_revocation_lets_in_again_at_once() -> None:
    revoked = {GARDENLET.user: NOW - timedelta(seconds=1)}
    issued = AUTHORITY.client(GARDENLET, NOW, timedelta(days=1))
    assert authenticate(shown(issued), facts(revoked=revoked)).principal == GARDENLET
    with pytest.raises(Forbidden, match="revoked"):
        authenticate(shown(issued), facts(revoked={GARDENLET.user: NOW}))
