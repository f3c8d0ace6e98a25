"""Settings of the dashboard: its address, its logins, and whether it may change anything."""

import sys
from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

import msgspec

from gardenbus.common.errors import SettingsInvalid
from gardenbus.common.runtime.health import is_loopback
from gardenbus.common.runtime.settings import CommonSettings, Port, load

USAGE = "usage: python -m gardenbus.dashboard [--allow-writes]"
LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")


class DashboardSettings(CommonSettings, frozen=True, kw_only=True):
    """Settings of a dashboard process. It does not connect to Redis: `redis_url` is not read."""

    dashboard_host: str = "127.0.0.1"
    """Address of the page. Any but the loopback's needs logins (`GARDENBUS_DASHBOARD_KEY_FILE`)."""

    dashboard_port: Port = 0
    """0 chooses a free port, which the log shows."""

    dashboard_allow_writes: bool = False
    """Allows the page to cordon, drain, annotate, retry and delete; as the user who has logged in, where people do."""

    dashboard_allowed_hosts: str = ""
    """Names by which browsers may call it besides the loopback's, separated by commas; `*` is any. Without it a
    foreign page could have its own name resolve to this address and read along."""

    dashboard_key_file: str = ""
    """File with the key that signs logins and sessions; made where there is none. With it people have to log in. All
    replicas need the same; a new key ends all sessions."""

    dashboard_public_url: str = ""
    """URL by which browsers reach the dashboard (`https://garden.example.org`). An OpenID Connect provider sends them
    back to it, and cookies are for https alone where it begins so."""

    dashboard_oidc_issuer: str = ""
    """URL of an OpenID Connect provider at which people may log in; needs a key file, a public URL and a client id."""

    dashboard_oidc_client_id: str = ""
    """Name of the dashboard at the provider."""

    dashboard_oidc_client_secret_file: str = ""
    """File with the dashboard's secret at the provider; none for a public client."""

    dashboard_oidc_user_claim: str = "email"
    """Claim of the ID token that is the user's name here. An `email` counts once the provider has verified it."""

    @property
    def allowed_hosts(self) -> frozenset[str]:
        """Host names in lower case, without ports."""
        given = (name.strip().lower() for name in self.dashboard_allowed_hosts.split(","))
        public = urlsplit(self.dashboard_public_url).hostname or ""
        return frozenset((*LOOPBACK_NAMES, *filter(None, (*given, public))))


def load_settings(
    arguments: Sequence[str] | None = None, environ: Mapping[str, str] | None = None
) -> DashboardSettings:
    """Read `--allow-writes` (if given) and the environment; raises SettingsInvalid with all problems."""
    settings = load(DashboardSettings, environ=environ)
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given not in ([], ["--allow-writes"]):
        raise SettingsInvalid((USAGE,))
    if problems := _login_problems(settings):
        raise SettingsInvalid(tuple(problems))
    return msgspec.structs.replace(settings, dashboard_allow_writes=True) if given else settings


def _login_problems(settings: DashboardSettings) -> list[str]:
    problems: list[str] = []
    if not settings.dashboard_key_file and not is_loopback(settings.dashboard_host):
        problems.append(
            f"GARDENBUS_DASHBOARD_KEY_FILE: others reach {settings.dashboard_host or 'all addresses'}, so people have "
            "to log in: name a file with a key (it is made where there is none), or listen on 127.0.0.1"
        )
    if settings.dashboard_oidc_issuer:
        needed = {
            "GARDENBUS_DASHBOARD_KEY_FILE": settings.dashboard_key_file,
            "GARDENBUS_DASHBOARD_PUBLIC_URL": settings.dashboard_public_url,
            "GARDENBUS_DASHBOARD_OIDC_CLIENT_ID": settings.dashboard_oidc_client_id,
        }
        problems += [f"{name}: GARDENBUS_DASHBOARD_OIDC_ISSUER needs it" for name, value in needed.items() if not value]
    for field in ("dashboard_public_url", "dashboard_oidc_issuer"):
        given: str = getattr(settings, field)
        url = urlsplit(given)
        if given and (url.scheme != "https" and not (url.scheme == "http" and is_loopback(url.hostname or ""))):
            problems.append(f"GARDENBUS_{field.upper()}: write https://… (http only for the loopback)")
    return problems
