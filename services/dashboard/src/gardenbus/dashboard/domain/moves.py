"""Moves of a shoot between seeds, from its Events. Pure."""

import re
from collections.abc import Iterable

import msgspec

from gardenbus.common.api.document import Document

REQUESTED = "MigrationRequested"
TAKEN_BACK = "MigrationTakenBack"

_REQUESTED = re.compile(r'^(?P<user>.*) moves the control plane from seed "(?P<before>[^"]*)" to "(?P<to>[^"]*)"')


class ShootMove(msgspec.Struct, frozen=True, rename="camel"):
    """One move, from its request; `is_taken_back` when the shoot stayed where it was."""

    at: str
    before: str
    to: str
    user: str
    is_taken_back: bool = False


def moves_of(events: Iterable[Document]) -> list[ShootMove]:
    """Return the moves in a shoot's Events, the newest first; the Events may come in any order."""
    found: list[ShootMove] = []
    for event in sorted(events, key=lambda each: str(each["at"])):
        if event["reason"] == REQUESTED and (match := _REQUESTED.match(str(event["message"]))):
            found.append(ShootMove(str(event["at"]), match["before"], match["to"], match["user"]))
        elif event["reason"] == TAKEN_BACK and found:
            found[-1] = msgspec.structs.replace(found[-1], is_taken_back=True)
    return found[::-1]
