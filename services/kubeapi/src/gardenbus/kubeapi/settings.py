"""Settings of the Kubernetes API: its address, its certificate, and whose certificates let in."""

import sys
from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

from gardenbus.common.errors import SettingsInvalid
from gardenbus.common.runtime.health import is_loopback
from gardenbus.common.runtime.settings import CommonSettings, Port, load

USAGE = "usage: python -m gardenbus.kubeapi"


class KubeApiSettings(CommonSettings, frozen=True, kw_only=True):
    """Settings of a process of the Kubernetes API. It does not connect to Redis: `redis_url` is not read."""

    kubeapi_host: str = "127.0.0.1"
    """Address to listen on."""

    kubeapi_port: Port = 6443
    """Port of HTTPS; 0 chooses a free one, which the log shows."""

    kubeapi_certificate: str = ""
    """File of the server's certificate (and what it is issued by), PEM; it is read anew when it has changed."""

    kubeapi_key: str = ""
    """File of its private key, PEM."""

    kubeapi_client_ca: str = ""
    """File of the authorities whose certificates let clients in, PEM; without it tokens alone do."""

    kubeapi_oidc_issuer: str = ""
    """URL of an OpenID Connect provider whose ID tokens let people in, as `--oidc-issuer-url` of kube-apiserver."""

    kubeapi_oidc_client_id: str = ""
    """Name of the client that those tokens are for."""

    kubeapi_oidc_user_claim: str = "email"
    """Claim of the token that is the user's name here. An `email` counts once the provider has verified it."""

    kubeapi_oidc_groups_claim: str = ""
    """Claim with the user's groups, which roles and Projects may name; without it a token brings none."""

    kubeapi_oidc_ca: str = ""
    """File of the authorities of the provider's certificate, PEM; without it those of the system."""

    kubeapi_requests: int = 400
    """Requests that are handled at the same time, besides watches; beyond them clients are told to try again."""

    kubeapi_watches: int = 10_000
    """Watches at the same time."""


def load_settings(arguments: Sequence[str] | None = None, environ: Mapping[str, str] | None = None) -> KubeApiSettings:
    """Read the environment; raises SettingsInvalid with all problems, and for arguments."""
    if list(sys.argv[1:] if arguments is None else arguments):
        raise SettingsInvalid((USAGE,))
    settings = load(KubeApiSettings, environ=environ)
    problems = [
        f"GARDENBUS_{field.upper()}: name the file; the Kubernetes API is served over TLS alone"
        for field in ("kubeapi_certificate", "kubeapi_key")
        if not getattr(settings, field)
    ]
    problems += _oidc_problems(settings)
    if problems:
        raise SettingsInvalid(tuple(problems))
    return settings


def _oidc_problems(settings: KubeApiSettings) -> list[str]:
    issuer = settings.kubeapi_oidc_issuer
    if not issuer:
        return []
    url, problems = urlsplit(issuer), list[str]()
    if url.scheme != "https" and not (url.scheme == "http" and is_loopback(url.hostname or "")):
        problems.append("GARDENBUS_KUBEAPI_OIDC_ISSUER: write https://… (http only for the loopback)")
    if not settings.kubeapi_oidc_client_id:
        problems.append("GARDENBUS_KUBEAPI_OIDC_CLIENT_ID: GARDENBUS_KUBEAPI_OIDC_ISSUER needs it")
    return problems
