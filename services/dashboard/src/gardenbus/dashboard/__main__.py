"""`python -m gardenbus.dashboard [--allow-writes]`, or `… link [USER]`, which prints a link that lets a user in."""

import sys
from pathlib import Path

from gardenbus.common.api.identity.principals import OPERATOR
from gardenbus.common.errors import GardenbusError, SettingsInvalid
from gardenbus.common.runtime.clock import SystemClock
from gardenbus.common.runtime.service import run_service
from gardenbus.dashboard.app import build
from gardenbus.dashboard.settings import load_settings
from gardenbus.diagnostics.login_keys import new_link, read_key


def link(user: str) -> str:
    """A link for a user to the dashboard of this environment. Raises SettingsInvalid, BadRequest."""
    settings = load_settings([])
    if not settings.dashboard_key_file or not settings.dashboard_public_url:
        raise SettingsInvalid(("GARDENBUS_DASHBOARD_KEY_FILE and GARDENBUS_DASHBOARD_PUBLIC_URL: a link needs both",))
    return new_link(read_key(Path(settings.dashboard_key_file)), SystemClock(), settings.dashboard_public_url, user)


if __name__ == "__main__":
    if sys.argv[1:2] == ["link"]:
        try:
            print(link(sys.argv[2] if sys.argv[2:] else OPERATOR))  # noqa: T201 - it is for people
        except GardenbusError as error:
            sys.exit(f"gardenbus.dashboard: {error.message}")
    else:
        run_service("dashboard", load_settings, build)
