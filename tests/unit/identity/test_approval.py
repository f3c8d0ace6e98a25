"""Who gets a certificate: the decision as a table."""

from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from gardenbus.common.api.identity.bootstrap_tokens import BootstrapToken, Token
from gardenbus.common.api.identity.principals import Principal
from gardenbus.common.api.identity.signing_requests import SIGNER, USAGES, SigningRequest
from gardenbus.credentials.certificates import new_key, new_request
from gardenbus.identity.domain.approval import (
    MOST_LIVING,
    ApprovalFacts,
    Approve,
    Decision,
    Deny,
    NotOurs,
    Wait,
    decide,
    spender,
)

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
CORK, DUBLIN = Principal("gardenlet", "aws-cork"), Principal("gardenlet", "aws-dublin")
PARIS = Principal("member-agent", "paris")
ANN = Principal("user", "ann")
KEY = new_key()


def a_request(
    username: str, principal: Principal = CORK, *, usages: tuple[str, ...] = USAGES, signer: str = SIGNER
) -> SigningRequest:
    return SigningRequest(
        name="csr-1",
        uid="u-1",
        created_at=NOW,
        pem=new_request(principal, KEY),
        signer=signer,
        usages=usages,
        username=username,
        expiration_seconds=None,
        is_approved=False,
        is_denied=False,
        is_failed=False,
        certificate=b"",
        serial="",
        not_after=None,
    )


def a_token(
    bound_to: Principal | None = None,
    *,
    spent_by: str = "",
    left: timedelta = timedelta(minutes=1),
    usable: bool = True,
) -> ApprovalFacts:
    token = BootstrapToken(Token("4f2a91", "0123456789abcdef"), NOW + left, usable, bound_to, spent_by)
    return ApprovalFacts(token=token)


TOO_MANY = ApprovalFacts(living=MOST_LIVING)
LIVES = NOW + timedelta(days=3)
BOOTSTRAPPER = "bootstrap:4f2a91"

TABLE: list[tuple[str, SigningRequest, ApprovalFacts, type[Decision] | str]] = [
    ("a token bound to the seed", a_request(BOOTSTRAPPER), a_token(CORK), Approve),
    ("a token for any seed", a_request(BOOTSTRAPPER), a_token(), Approve),
    ("a token for a member cluster", a_request(BOOTSTRAPPER, PARIS), a_token(PARIS), Approve),
    (
        "a token bound to the seed, whose gardenlet lost its key",
        a_request(BOOTSTRAPPER),
        a_token(CORK)._replace(lives_until=LIVES),
        Approve,
    ),
    (
        "a token for any seed, where one lives",
        a_request(BOOTSTRAPPER),
        a_token()._replace(lives_until=LIVES),
        Wait,
    ),
    ("a token of another seed", a_request(BOOTSTRAPPER), a_token(DUBLIN), "NotOwnName"),
    ("a token of a member cluster", a_request(BOOTSTRAPPER), a_token(PARIS), "NotOwnName"),
    ("a token for a person", a_request(BOOTSTRAPPER, ANN), a_token(), "NotOwnName"),
    ("a token that does not exist", a_request(BOOTSTRAPPER), ApprovalFacts(), "TokenInvalid"),
    ("a token for something else", a_request(BOOTSTRAPPER), a_token(CORK, usable=False), "TokenInvalid"),
    ("a token that ended", a_request(BOOTSTRAPPER), a_token(CORK, left=timedelta()), "TokenExpired"),
    ("a token that was spent", a_request(BOOTSTRAPPER), a_token(CORK, spent_by="csr-0/u-0"), "TokenUsed"),
    (
        "a token that was spent on a request of the same name before",
        a_request(BOOTSTRAPPER),
        a_token(CORK, spent_by="csr-1/u-0"),
        "TokenUsed",
    ),
    (
        "a token that was spent on this very request",
        a_request(BOOTSTRAPPER),
        a_token(CORK, spent_by="csr-1/u-1"),
        Approve,
    ),
    ("a gardenlet for itself", a_request("seed:aws-cork"), ApprovalFacts(lives_until=LIVES), Approve),
    ("a gardenlet with too many that live", a_request("seed:aws-cork"), TOO_MANY, "TooManyCertificates"),
    ("a member agent for itself", a_request("member:paris", PARIS), ApprovalFacts(), Approve),
    ("a gardenlet for another seed", a_request("seed:aws-dublin"), ApprovalFacts(), "NotOwnName"),
    ("a member agent for a seed", a_request("member:paris"), ApprovalFacts(), "NotOwnName"),
    ("a gardenlet with an old key", a_request("seed:aws-cork"), ApprovalFacts(same_key=("csr-0",)), "Replayed"),
    ("a token with an old key", a_request(BOOTSTRAPPER), a_token(CORK)._replace(same_key=("csr-0",)), "Replayed"),
    ("a gardenlet that was revoked", a_request("seed:aws-cork"), ApprovalFacts(is_revoked=True), Wait),
    ("a person for a seed", a_request("ann"), ApprovalFacts(), Wait),
    ("a person for herself", a_request("ann", ANN), ApprovalFacts(), Wait),
    ("the operator for a seed", a_request("operator"), ApprovalFacts(), Wait),
    ("nobody in particular", a_request("system:anonymous"), ApprovalFacts(), Wait),
    ("for the operator", a_request("ann", Principal("operator", "operator")), ApprovalFacts(), "InvalidRequest"),
    ("for a bootstrapper", a_request("ann", Principal("bootstrap", "4f2a91")), ApprovalFacts(), "InvalidRequest"),
    (
        "for a person with a service's name",
        a_request("ann", Principal("user", "relay")),
        ApprovalFacts(),
        "InvalidRequest",
    ),
    (
        "without a key encipherment",
        a_request("seed:aws-cork", usages=("client auth", "digital signature")),
        ApprovalFacts(),
        Approve,
    ),
    (
        "of a server",
        a_request("seed:aws-cork", usages=("server auth", "digital signature")),
        ApprovalFacts(),
        "UnsupportedUsages",
    ),
    (
        "of client and server",
        a_request("seed:aws-cork", usages=(*USAGES, "server auth")),
        ApprovalFacts(),
        "UnsupportedUsages",
    ),
    ("of another signer", a_request("seed:aws-cork", signer="example.com/mine"), ApprovalFacts(), NotOurs),
]


@pytest.mark.parametrize(("request_", "facts", "expected"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_a_request_is_approved_denied_or_waits(
    request_: SigningRequest, facts: ApprovalFacts, expected: type[Decision] | str
) -> None:
    decision = decide(request_, facts)
    if isinstance(expected, str):
        assert isinstance(decision, Deny)
        assert decision.reason == expected
    else:
        assert isinstance(decision, expected)


@pytest.mark.parametrize("cut", [0, 40, -60])
def test_a_request_that_is_cut_is_denied(cut: int) -> None:
    request = a_request("seed:aws-cork")
    assert isinstance(decide(request._replace(pem=request.pem[:cut]), ApprovalFacts()), Deny)


def test_a_request_that_another_key_signed_is_denied() -> None:
    pem = bytearray(a_request("seed:aws-cork").pem)
    lines = bytes(pem).splitlines()
    signature = lines[-2]
    lines[-2] = bytes(reversed(signature)) if signature != bytes(reversed(signature)) else signature[::-1]
    broken = a_request("seed:aws-cork")._replace(pem=b"\n".join(lines))
    assert isinstance(decide(broken, ApprovalFacts()), Deny)


@pytest.mark.parametrize(
    ("more", "names", "reported"),
    [
        ("system:masters", (), "more than one organization"),
        ("", ("nats.garden", "localhost"), "alternative names"),
    ],
)
def test_a_request_that_asks_for_more_than_a_name_is_denied(more: str, names: tuple[str, ...], reported: str) -> None:
    """As Gardener does; the certificate would not have it, but whoever asks for it means it."""
    organizations = ["gardener.cloud:system:seeds", *filter(None, [more])]
    subject = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, each) for each in organizations]
    subject.append(x509.NameAttribute(NameOID.COMMON_NAME, "gardener.cloud:system:seed:aws-cork"))
    builder = x509.CertificateSigningRequestBuilder().subject_name(x509.Name(subject))
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(list(map(x509.DNSName, names))), critical=False)
    key = ec.generate_private_key(ec.SECP256R1())
    pem = builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    decision = decide(a_request(f"seed:{CORK.name}")._replace(pem=pem), ApprovalFacts())
    assert isinstance(decision, Deny)
    assert (decision.reason, reported in decision.message) == ("InvalidRequest", True)


def test_an_approval_says_which_token_is_spent_on_what() -> None:
    request = a_request(BOOTSTRAPPER)
    assert decide(request, a_token(CORK)) == Approve("by bootstrap token 4f2a91", "4f2a91")
    assert spender(request) == "csr-1/u-1"
