"""Settings of the dashboard: its address, and whether it may change anything."""

import sys
from collections.abc import Mapping, Sequence

import msgspec

from gardenbus.common.errors import SettingsInvalid
from gardenbus.common.runtime.settings import CommonSettings, Port, load

USAGE = "usage: python -m gardenbus.dashboard [--allow-writes]"
LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")


class DashboardSettings(CommonSettings, frozen=True, kw_only=True):
    """Settings of a dashboard process. It does not connect to Redis: `redis_url` is not read."""

    dashboard_host: str = "127.0.0.1"
    """Address of the page. Loopback, as it authenticates nobody; 0.0.0.0 in a container."""

    dashboard_port: Port = 0
    """0 chooses a free port, which the log shows."""

    dashboard_allow_writes: bool = False
    """Allows the page to cordon seeds, retry and delete. Off, as everybody who reaches the page could."""

    dashboard_allowed_hosts: str = ""
    """Names by which browsers may call it besides the loopback's, separated by commas; `*` is any. Without it a
    foreign page could have its own name resolve to this address and read along."""

    @property
    def allowed_hosts(self) -> frozenset[str]:
        """Host names in lower case, without ports."""
        given = (name.strip().lower() for name in self.dashboard_allowed_hosts.split(","))
        return frozenset((*LOOPBACK_NAMES, *filter(None, given)))


def load_settings(
    arguments: Sequence[str] | None = None, environ: Mapping[str, str] | None = None
) -> DashboardSettings:
    """Read `--allow-writes` (if given) and the environment; raises SettingsInvalid with all problems."""
    settings = load(DashboardSettings, environ=environ)
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given not in ([], ["--allow-writes"]):
        raise SettingsInvalid((USAGE,))
    return msgspec.structs.replace(settings, dashboard_allow_writes=True) if given else settings
