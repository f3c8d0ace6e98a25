"""The keys of a small fixed fleet whose users stand in the server's configuration: there is no auth callout.

    accounts.conf                          accounts and users, to be included in nats.conf
    users.json                             nkey → user, for the apiserver
    operator.json, system.nk               the operator's user and password; the system account's user
    services/<name>.nk                     each service's
    gardenlets/<seed>/credentials.nk       a gardenlet's, where it looks for them in its state directory
    members/<cluster>/credentials.nk       likewise a member agent's
    users/<name>.nk, schedulers/<name>.nk  people's and programs', schedulers'
    extensions/<seed>.nk                   of the extension of a seed's backend `nats`

Keys that are there are kept. Whose file is removed is nobody any more after the next export.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from gardenbus.common.api.identity.names import issued
from gardenbus.common.api.identity.permissions import service_names
from gardenbus.common.api.identity.principals import SERVICE_ACCOUNT_PREFIX, Principal, Role
from gardenbus.common.api.keys import Subjects
from gardenbus.common.errors import BadRequest
from gardenbus.credentials import secret_files
from gardenbus.credentials.identity_directory import kept_nkey, kept_operator
from gardenbus.credentials.owned_directories import foreign_path
from gardenbus.credentials.server_configuration import Authorization, Password, authorization_configuration

ACCOUNTS = "accounts.conf"
USERS = "users.json"

_DIRECTORIES: Mapping[Role, str] = {
    "gardenlet": "gardenlets",
    "member-agent": "members",
    "user": "users",
    "scheduler": "schedulers",
    "extension": "extensions",
    "plugin": "plugins",
}
_AGENTS = ("gardenlet", "member-agent")


def export(directory: Path, principals: Iterable[Principal], subjects: Subjects) -> Mapping[Principal, Path]:
    """Write all files; returns the file of each principal outside the services, also of those from before.

    Raises BadRequest for a name that cannot be, and for what belongs to somebody else, SettingsInvalid for a file that
    cannot be read; OSError.
    """
    if (foreign := foreign_path(directory, (directory,))) is not None:
        raise BadRequest(str(foreign))
    for principal in principals:
        _check(principal)
    for place in (directory, directory / "services", *(directory / name for name in _DIRECTORIES.values())):
        secret_files.make_directory(place)
    found = _existing(directory) | {who: _file(directory, who) for who in principals}
    keys = {who: _public(file) for who, file in sorted(found.items())}
    operator = kept_operator(directory / "operator.json")
    authorization = Authorization(
        services={name: _public(directory / "services" / f"{name}.nk") for name in service_names()},
        system=_public(directory / "system.nk"),
        operator=Password(operator.user, operator.password),
        static=keys,
    )
    users = {public: who.user for who, public in keys.items()}
    secret_files.write(directory / USERS, msgspec.json.format(msgspec.json.encode(users)) + b"\n")
    secret_files.write(directory / ACCOUNTS, authorization_configuration(authorization, subjects).encode())
    return found


def _check(principal: Principal) -> None:
    is_account = principal.user.startswith(SERVICE_ACCOUNT_PREFIX)
    if is_account or principal.role not in _DIRECTORIES or issued(principal.user) != principal:
        raise BadRequest(
            f"{principal.user}: only gardenlets, member agents, people, schedulers and extensions have such a key"
        )


def _existing(directory: Path) -> dict[Principal, Path]:
    """Those who have a key of an earlier export."""
    found: dict[Principal, Path] = {}
    for role, name in _DIRECTORIES.items():
        files = (directory / name).glob("*/credentials.nk" if role in _AGENTS else "*.nk")
        for file in files:
            found[Principal(role, file.parent.name if role in _AGENTS else file.stem)] = file
    for principal in found:
        _check(principal)
    return found


def _file(directory: Path, principal: Principal) -> Path:
    place = directory / _DIRECTORIES[principal.role]
    if principal.role in _AGENTS:
        return place / principal.name / "credentials.nk"
    return place / f"{principal.name}.nk"


def _public(file: Path) -> str:
    secret_files.make_directory(file.parent)
    return kept_nkey(file, "user").public
