"""Users of the server's configuration: the server states their nkeys, a file says whose they are."""

import re
from collections.abc import Mapping
from pathlib import Path

import msgspec
import structlog

from gardenbus.common.api.decoding import decode_json
from gardenbus.common.api.identity.names import issued
from gardenbus.common.errors import BadRequest, SettingsInvalid

_NKEY = re.compile(r"U[A-Z2-7]+")

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


class StaticUsers:
    """A JSON object nkey → user; read anew when the file is another. Raises SettingsInvalid when it is none at first.

    Its users are such as the landscape issues credentials to; one that becomes unreadable later changes nothing.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._version = (0, 0)
        self._users: Mapping[str, str] = {}
        try:
            self._read()
        except (OSError, msgspec.MsgspecError, BadRequest) as error:
            raise SettingsInvalid((f"GARDENBUS_STATIC_USERS: {file}: {error}",)) from error

    def user_of(self, sender: str) -> str:
        """The user of an nkey; anything else is itself."""
        try:
            self._read()
        except (OSError, msgspec.MsgspecError, BadRequest) as error:
            log.warning("users.unreadable", file=str(self._file), reason=str(error))
        return self._users.get(sender, sender)

    def _read(self) -> None:
        status = self._file.stat()
        version = (status.st_mtime_ns, status.st_ino)
        if version != self._version:
            self._users = _checked(decode_json(self._file.read_bytes(), dict[str, str]))
            self._version = version


def _checked(users: Mapping[str, str]) -> Mapping[str, str]:
    """The users by their nkeys. Raises BadRequest for a key that is none, and for a name that is for others."""
    for nkey, user in users.items():
        if not _NKEY.fullmatch(nkey):  # a name would make another of whoever carries it
            raise BadRequest(f"{nkey[:80]!r} is no public nkey of a user: it begins with U")
        issued(user)
    return users
