"""Uids of objects."""

import re

_UID = re.compile(r"[0-9A-Za-z][-0-9A-Za-z]{0,127}")


def is_uid(text: str) -> bool:
    """True when the text has the form of a uid: the store makes UUIDs, and queue subjects contain them."""
    return _UID.fullmatch(text) is not None
