"""nkeys are NATS' own: what nsc and nats-server write can be read, and the other way round."""

import pytest

from gardenbus.common.api.identity.nkeys import key_pair, key_pair_of, verify
from gardenbus.common.errors import BadRequest
from gardenbus.credentials.new_nkeys import new_nkey


@pytest.mark.parametrize(
    ("purpose", "seed", "public"), [("user", "SU", "U"), ("account", "SA", "A"), ("server", "SN", "N")]
)
def test_the_first_letters_say_what_a_key_is_for(purpose: str, seed: str, public: str) -> None:
    pair = new_nkey(purpose)  # pyright: ignore[reportArgumentType]
    assert (pair.seed[:2], pair.public[:1]) == (seed, public)
    assert key_pair(pair.seed) == pair


def test_a_seed_of_nats_own_documentation_is_read() -> None:
    pair = key_pair("SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY")
    assert pair.public == "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4"


def test_only_the_owner_signs() -> None:
    pair, other = new_nkey("user"), new_nkey("user")
    signature = pair.sign(b"nonce")
    assert verify(pair.public, b"nonce", signature)
    assert not verify(pair.public, b"another", signature)
    assert not verify(other.public, b"nonce", signature)


@pytest.mark.parametrize(
    "text", ["", "SU", "no key", "U" * 56, "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VX"]
)
def test_what_is_no_seed_is_said_to_be_none(text: str) -> None:
    with pytest.raises(BadRequest, match="no nkey"):
        key_pair(text)


def test_a_public_key_is_no_seed() -> None:
    with pytest.raises(BadRequest):
        key_pair(key_pair_of("user", bytes(32)).public)
