"""NATS' nkeys: Ed25519 key pairs written as text whose first letter says what they are for.

The format is NATS' (https://docs.nats.io/running-a-nats-service/configuration/securing_nats/auth_intro/nkey_auth): a
prefix byte (two for a seed), 32 bytes, and a CRC-16 of them, in base32 without padding.
"""

import base64
import binascii
from typing import Literal, NamedTuple

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from gardenbus.common.errors import BadRequest

KeyPurpose = Literal["user", "account", "server"]

_SEED = 18 << 3
_PREFIXES: dict[KeyPurpose, int] = {"user": 20 << 3, "account": 0, "server": 13 << 3}
_KEY_BYTES = 32


class KeyPair(NamedTuple):
    """A key pair: `seed` is the secret (`SU…`), `public` the name that everybody may know (`U…`)."""

    seed: str
    public: str

    def sign(self, data: bytes) -> bytes:
        """The signature of data: 64 bytes."""
        return _private_key(self.seed)[1].sign(data)


def key_pair_of(purpose: KeyPurpose, secret: bytes) -> KeyPair:
    """The pair of 32 secret bytes."""
    prefix = _PREFIXES[purpose]
    return key_pair(_encode(bytes((_SEED | prefix >> 5, (prefix & 31) << 3)) + secret))


def key_pair(seed: str) -> KeyPair:
    """The pair of a seed. Raises BadRequest when the text is no seed."""
    prefix, key = _private_key(seed.strip())
    return KeyPair(seed.strip(), _encode(bytes((prefix,)) + key.public_key().public_bytes_raw()))


def verify(public: str, data: bytes, signature: bytes) -> bool:
    """Check that the owner of a public key signed the data. Raises BadRequest when the text is no public key."""
    raw = _decode(public, 1 + _KEY_BYTES)
    try:
        Ed25519PublicKey.from_public_bytes(raw[1:]).verify(signature, data)
    except InvalidSignature:
        return False
    return True


def _private_key(seed: str) -> tuple[int, Ed25519PrivateKey]:
    raw = _decode(seed, 2 + _KEY_BYTES)
    if raw[0] & 0xF8 != _SEED:
        raise BadRequest("this is no nkey seed: one begins with S")
    return (raw[0] & 7) << 5 | raw[1] >> 3, Ed25519PrivateKey.from_private_bytes(raw[2:])


def _encode(raw: bytes) -> str:
    checksum = binascii.crc_hqx(raw, 0).to_bytes(2, "little")
    return base64.b32encode(raw + checksum).decode().rstrip("=")


def _decode(text: str, length: int) -> bytes:
    try:
        raw = base64.b32decode(text + "=" * (-len(text) % 8))
    except (binascii.Error, ValueError) as error:
        raise BadRequest("this is no nkey: it is not base32") from error
    body, checksum = raw[:-2], raw[-2:]
    if len(body) != length or binascii.crc_hqx(body, 0).to_bytes(2, "little") != checksum:
        raise BadRequest("this is no nkey, or it was cut: its length or checksum is wrong")
    return body
