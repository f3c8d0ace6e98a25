"""New nkeys."""

import secrets

from gardenbus.common.api.identity.nkeys import KeyPair, Purpose, key_pair_of


def new_nkey(purpose: Purpose) -> KeyPair:
    """A new key pair."""
    return key_pair_of(purpose, secrets.token_bytes(32))
