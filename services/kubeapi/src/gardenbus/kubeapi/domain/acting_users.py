"""Users in whose name requests are sent to the apiserver."""

from typing import NamedTuple


class ActingUser(NamedTuple):
    """A user, and the groups that a provider, or who impersonates them, has stated."""

    name: str
    groups: tuple[str, ...] = ()
    impersonator: str = ""
    """The operator who sends requests as this user."""
