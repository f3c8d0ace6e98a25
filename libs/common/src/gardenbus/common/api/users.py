"""Names of users, and how they stand in subjects."""

import re

from gardenbus.common.errors import BadRequest

_USER = re.compile(r"[a-z0-9][a-z0-9:@._-]{0,252}")
_DOT = "%2E"

ANONYMOUS = "system:anonymous"
"""The requester whom a subject does not name; nobody carries the name (`identity.names`)."""


def check_user(user: str) -> None:
    """Raise BadRequest unless the text can be the name of a user."""
    if not _USER.fullmatch(user):
        raise BadRequest(
            f"{user[:80]!r} is no user: it begins with a-z or 0-9 and has at most 253 of a-z, 0-9 and : @ . _ -"
        )


def subject_token(user: str) -> str:
    """A user as one token of a subject: dots, which would part it, are written as `%2E`."""
    return user.replace(".", _DOT)


def token_text(token: str) -> str:
    """The text that a token of a subject was made of; `identity.names` says if a user carries it."""
    return token.replace(_DOT, ".")
