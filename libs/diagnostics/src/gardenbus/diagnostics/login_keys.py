"""The key of the dashboard's logins, in its file, and what is signed with it: random ids, links, and their times."""

import contextlib
import os
import secrets
from datetime import timedelta
from pathlib import Path

from gardenbus.common.errors import BadRequest, SettingsInvalid
from gardenbus.common.ports.clock import Clock
from gardenbus.diagnostics.login_tokens import LINK_LIFE, Claims, check_key, signed

KEY_BYTES = 32
VARIABLE = "GARDENBUS_DASHBOARD_KEY_FILE"


def new_claims(clock: Clock, user: str, life: timedelta) -> Claims:
    """Claims under an id of their own, from now on."""
    return Claims(user, secrets.token_hex(8), int((clock.now() + life).timestamp()))


def new_link(key: bytes, clock: Clock, url: str, user: str) -> str:
    """A link that lets a user in once. The token stands behind `#`: it reaches no server's log, and no other page."""
    return f"{url.rstrip('/')}/login#{signed(key, 'link', new_claims(clock, user, LINK_LIFE))}"


def read_key(file: Path) -> bytes:
    """The key in a file; makes one where there is none. Raises SettingsInvalid."""
    try:
        if not file.exists():
            _make(file)
    except OSError as error:
        raise SettingsInvalid((f"{VARIABLE}: {file} cannot be made: {error.strerror}",)) from error
    try:
        return check_key(file.read_text(encoding="ascii"))
    except (OSError, UnicodeDecodeError, BadRequest) as error:
        raise SettingsInvalid((f"{VARIABLE}: {file} holds no key: {error}",)) from error


def _make(file: Path) -> None:
    """Write a new key, whole, unless another replica is faster."""
    draft = file.with_name(f".{file.name}.{secrets.token_hex(4)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as opened:
            opened.write(f"{secrets.token_hex(KEY_BYTES)}\n")
        with contextlib.suppress(FileExistsError):
            file.hardlink_to(draft)
    finally:
        draft.unlink()
