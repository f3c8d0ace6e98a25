"""Keys of a landscape in containers: a directory for each holder, which is all that its container gets to see.

    authority       all of it (`identity_directory`): for `identity`, and for whoever makes the keys
    <service>       nats.nk, redis.password (where it is a user of Redis), ca.crt; kubeapi: server.crt, server.key
    nats            server.crt, server.key, authorization.conf; for a cluster routes.{conf,crt,key,ca.crt}
    redis           server.crt, server.key, ca.crt, users.acl; for a cluster replication.conf, and sentinel.conf
    operator        operator.json, redis.password, ca.crt
    <agent's>       ca.crt, and <seed or cluster>/credentials.pem: an agent's state directory

What is there and sound stays, so that it may be called at each start: it makes what is missing, and what ended.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import NamedTuple, cast

from cryptography import x509

from gardenbus.common.adapters.redis.users import RedisUser, replica_login, sentinel_login, sentinel_users
from gardenbus.common.api.identity.permissions import service_names
from gardenbus.common.api.identity.principals import Principal
from gardenbus.common.api.keys import Subjects
from gardenbus.common.errors import BadRequest
from gardenbus.credentials import routes, secret_files
from gardenbus.credentials.certificates import certified_principal, read_certificate
from gardenbus.credentials.identity_directory import Identities, IdentityDirectory
from gardenbus.credentials.redis_users import write_users
from gardenbus.credentials.server_configuration import (
    Authorization,
    Password,
    authorization_configuration,
    tls_configuration,
)

AUTHORITY, NATS, REDIS, OPERATOR = "authority", "nats", "redis", "operator"
AGENTS_CREDENTIALS = "credentials.pem"
_HTTPS = ("kubeapi",)
"""Services that serve HTTPS themselves, with the servers' certificate."""
KEYS_OF_NATS = Path("/etc/nats/keys")
"""Directory of the keys in the container of NATS."""
MASTER = "garden"
"""The name by which the Sentinels of the deployment know the master."""


class Owners(NamedTuple):
    """User ids as which the containers run."""

    services: int
    redis: int
    nats: int


class Deployment(NamedTuple):
    """Servers, agents and prefix that keys are made for."""

    names: Sequence[str]
    """By which the servers are reached."""
    agents: Mapping[Principal, str]
    """Agents, and the names of the directories that are theirs."""
    prefix: str = "garden"
    routes: Sequence[str] = ()
    """Names by which the NATS servers of a cluster reach each other; none for a single server."""


def make_keys(directory: Path, deployment: Deployment, now: datetime, owners: Owners | None = None) -> None:
    """Make what is missing below a directory, whose parts may be mounted. Raises SettingsInvalid, OSError."""
    identity = IdentityDirectory(directory / AUTHORITY)
    keys = identity.prepare(service_names(), now, deployment.names)
    users = write_users(identity.path / REDIS, deployment.prefix)
    ca, server = (identity.authorities,), (identity.server_certificate, identity.server_key)
    for name in service_names():
        holder = _holder(directory / name)
        _copy(ca, holder)
        _write(holder / "nats.nk", identity.service(name).read_bytes())
        if (password := users.passwords.get(cast("RedisUser", name))) is not None:
            _write(holder / "redis.password", password.read_bytes())
        if name in _HTTPS:
            _copy(server, holder)
    operator = _holder(directory / OPERATOR)
    _copy((identity.operator, *ca), operator)
    _write(operator / "redis.password", users.passwords["operator"].read_bytes())
    redis = _holder(directory / REDIS)
    _copy((users.acl, *server, *ca), redis)
    passwords: dict[RedisUser, str] = {
        user: file.read_text(encoding="ascii").strip() for user, file in users.passwords.items()
    }
    _write(redis / "replication.conf", replica_login(passwords).encode())
    _write(redis / "sentinel.conf", (sentinel_login(MASTER, passwords) + sentinel_users(passwords)).encode())
    nats = _holder(directory / NATS)
    _copy(server, nats)
    if deployment.routes:
        _keep_routes(nats, deployment.routes, secret_files.kept_password(identity.path / "routes.password"), now)
    _write(nats / "authorization.conf", _authorization(keys, Subjects(deployment.prefix)).encode())
    for principal, place in deployment.agents.items():
        _certify(principal, _holder(directory / place), identity, now)
    if owners is not None:
        _give(directory, owners)


def _keep_routes(nats: Path, hosts: Sequence[str], password: str, now: datetime) -> None:
    """Lay down by what the servers let each other in; `routes.conf` names the files by their paths in the container."""
    routes.keep_route_certificate(nats, hosts, now)
    certificate, key, authority = (KEYS_OF_NATS / file for file in (routes.CERTIFICATE, routes.KEY, routes.AUTHORITY))
    text = routes.route_configuration(
        name="gardenbus",
        listen=f"0.0.0.0:{routes.PORT}",
        others=[f"{host}:{routes.PORT}" for host in hosts],
        admission=routes.RouteAdmission("route", password, tls_configuration(certificate, key, peers=authority)),
        is_advertised=False,
    )
    _write(nats / "routes.conf", text.encode())


def _certify(principal: Principal, place: Path, identity: IdentityDirectory, now: datetime) -> None:
    """Lay a certificate where an agent looks for it, unless there is one that lets it in."""
    _copy((identity.authorities,), place)
    file = _holder(place / principal.name) / AGENTS_CREDENTIALS
    try:
        authorities = x509.load_pem_x509_certificates(identity.authorities.read_bytes())
        is_sound = certified_principal(read_certificate(file.read_bytes()), authorities, now) == principal
    except (OSError, BadRequest):
        is_sound = False
    if not is_sound:
        issued = identity.authority().client(principal, now)
        secret_files.write(file, issued.certificate + issued.key)


def _authorization(keys: Identities, subjects: Subjects) -> str:
    authorization = Authorization(
        services={name: pair.public for name, pair in keys.services.items()},
        system=keys.system.public,
        operator=Password(keys.operator.user, keys.operator.password),
        callout=keys.callout.public,
        issuer=keys.issuer.public,
    )
    return authorization_configuration(authorization, subjects)


def _holder(path: Path) -> Path:
    secret_files.make_directory(path)
    return path


def _copy(files: Iterable[Path], holder: Path) -> None:
    for file in files:
        _write(holder / file.name, file.read_bytes())


def _write(file: Path, content: bytes) -> None:
    """Write a file unless it has this content: who watches it is to notice changes alone."""
    if not file.exists() or file.read_bytes() != content:
        secret_files.write(file, content)


def _give(directory: Path, owners: Owners) -> None:
    """Change the owner of what was made to the users that the containers run as."""
    special = {NATS: owners.nats, REDIS: owners.redis}
    for holder in directory.iterdir():
        owner = special.get(holder.name, owners.services)
        for path in (holder, *holder.rglob("*")):
            if path.lstat().st_uid != owner:
                os.chown(path, owner, owner, follow_symlinks=False)
