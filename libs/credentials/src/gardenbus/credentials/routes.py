"""Routes of a NATS cluster: by a password and a shared certificate its servers let each other in, and nobody else.

Both ends of a route show it. Its authority signs nothing else, and the authority's key is kept nowhere: other names of
servers take a new one, and a restart of all of them.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from gardenbus.common.errors import BadRequest
from gardenbus.credentials import secret_files
from gardenbus.credentials.certificates import CA_LIFE, Authority, names_of, new_authority, read_certificate

AUTHORITY, CERTIFICATE, KEY = "routes.ca.crt", "routes.crt", "routes.key"
PORT = 6222


class RouteAdmission(NamedTuple):
    """By what the servers of a cluster let each other in."""

    user: str
    password: str
    tls: str = ""
    """The block `tls`, unless there is none."""


def new_route_certificate(hosts: Sequence[str], now: datetime) -> Mapping[str, bytes]:
    """Authority, key and certificate of servers that are reached by these names, PEM, by the names of their files."""
    made = new_authority("gardenbus routes", now)
    own = Authority(made).certificate_for("route", now, hosts=hosts, life=CA_LIFE)
    return {AUTHORITY: made.certificate, KEY: own.key, CERTIFICATE: own.certificate}


def keep_route_certificate(place: Path, hosts: Iterable[str], now: datetime) -> None:
    """Write all three unless the certificate there is for these names. It comes last, as it vouches for the rest.

    Raises OSError.
    """
    wanted = sorted(hosts)
    try:
        is_sound = set(wanted) <= names_of(read_certificate((place / CERTIFICATE).read_bytes()))
    except (OSError, BadRequest):
        is_sound = False
    if not is_sound:
        for name, content in new_route_certificate(wanted, now).items():
            secret_files.write(place / name, content)


def route_configuration(
    *, name: str, listen: str, others: Sequence[str], admission: RouteAdmission, is_advertised: bool = True
) -> str:
    """The block `cluster` of nats.conf. Unless `is_advertised`, clients learn of no servers but their own.

    One that hangs is left after four seconds: until then requests may go to those who were connected to it.
    """
    user, password, tls = admission
    login = f"user: {json.dumps(user)}, password: {json.dumps(password)}"
    routes = ", ".join(json.dumps(f"nats-route://{user}:{password}@{other}") for other in others)
    advertised = "" if is_advertised else "  no_advertise: true\n"
    return (
        f"cluster {{\n  name: {name}\n  listen: {json.dumps(listen)}\n"
        f"  authorization {{ {login}, timeout: 3 }}\n  {tls}  routes: [{routes}]\n"
        f'{advertised}  ping_interval: "2s"\n  ping_max: 2\n}}\n'
    )
