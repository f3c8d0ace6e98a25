"""New nkeys."""

import secrets

from gardenbus.common.api.identity.nkeys import KeyPair, KeyPurpose, key_pair_of


def new_nkey(purpose: KeyPurpose) -> KeyPair:
    """A new key pair."""
    return key_pair_of(purpose, secrets.token_bytes(32))
