"""Bootstrap tokens are Secrets in Kubernetes' form."""

import base64
from datetime import UTC, datetime

import pytest

from gardenbus.common.api.document import Document
from gardenbus.common.api.identity.bootstrap_tokens import (
    Token,
    key_of_token,
    new_token_secret,
    parse_token,
    read_token,
    spent,
)
from gardenbus.common.api.identity.principals import Principal
from gardenbus.common.errors import BadRequest

EXPIRES = datetime(2026, 3, 1, 13, tzinfo=UTC)
TOKEN = Token("4f2a91", "0123456789abcdef")


def a_secret(**changes: str) -> Document:
    secret = new_token_secret(TOKEN, expires=EXPIRES, bound_to=Principal("gardenlet", "aws-cork"), description="new")
    for name, value in changes.items():
        secret["data"][name.replace("_", "-")] = base64.b64encode(value.encode()).decode()
    return secret


def test_a_token_is_read_as_it_was_written() -> None:
    token = read_token(a_secret())
    assert (str(token.token), token.expires, token.description) == ("4f2a91.0123456789abcdef", EXPIRES, "new")
    assert token.authenticates
    assert token.bound_to == Principal("gardenlet", "aws-cork")
    assert not token.spent_by
    assert token.principal.user == "bootstrap:4f2a91"


def test_a_token_of_kubeadm_is_read() -> None:
    secret = a_secret()
    del secret["data"]["bound-to"], secret["data"]["description"]
    secret["data"] |= {"auth-extra-groups": base64.b64encode(b"system:bootstrappers:kubeadm").decode()}
    assert read_token(secret).bound_to is None


def test_a_token_remembers_what_it_was_spent_on() -> None:
    assert read_token(spent(a_secret(), "csr-1/u-1")).spent_by == "csr-1/u-1"


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"token_id": "UPPER1"}, "token-id"),
        ({"token_secret": "short"}, "token-secret"),
        ({"token_id": "another".removesuffix("r")}, "metadata.name"),
        ({"expiration": ""}, "expiration"),
        ({"expiration": "tomorrow"}, "expiration"),
        ({"bound_to": "ann"}, "bound-to"),
    ],
)
def test_a_secret_that_is_no_token_is_named_with_its_field(changes: dict[str, str], field: str) -> None:
    with pytest.raises(BadRequest, match=field):
        read_token(a_secret(**changes))


def test_data_that_is_not_base64_is_named() -> None:
    secret = a_secret()
    secret["data"]["expiration"] = 7
    with pytest.raises(BadRequest, match=r"data\.expiration: is not base64"):
        read_token(secret)


@pytest.mark.parametrize("text", ["", "4f2a91", "4f2a91.short", "4F2A91.0123456789abcdef", "4f2a91.0123456789abcdef0"])
def test_what_is_no_token_is_refused_without_showing_it(text: str) -> None:
    with pytest.raises(BadRequest) as rejected:
        parse_token(text)
    assert not text or text not in rejected.value.message


def test_a_token_has_one_secret() -> None:
    assert str(key_of_token("4f2a91")) == "secret kube-system/bootstrap-token-4f2a91"
    with pytest.raises(BadRequest):
        key_of_token("../../x")
