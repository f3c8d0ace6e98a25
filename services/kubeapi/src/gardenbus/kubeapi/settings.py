"""Settings of the Kubernetes API: its address, its certificate, and whose certificates let in."""

import sys
from collections.abc import Mapping, Sequence

from gardenbus.common.errors import SettingsInvalid
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
    if problems:
        raise SettingsInvalid(tuple(problems))
    return settings
