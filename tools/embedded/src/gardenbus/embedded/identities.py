"""Identities of an embedded landscape: the keys below D/identity, and the part of nats.conf that is made of them."""

from datetime import UTC, datetime
from pathlib import Path

from gardenbus.cli.local.directory import DirectoryUnwritable
from gardenbus.common.api.identity.permissions import Permissions, permissions_of, service_names
from gardenbus.common.api.identity.principals import Principal
from gardenbus.common.api.keys import Subjects
from gardenbus.credentials.identity_directory import IdentityDirectory, OperatorLogin
from gardenbus.credentials.server_configuration import Authorization, Password, authorization_configuration

AGENTS = ("gardenlet", "memberagent")
"""Processes that host agents. They speak for all that they host, as users of this server's configuration."""


class EmbeddedIdentities:
    """Keys of a landscape, made by the first `up` and kept. Raises SettingsInvalid, DirectoryUnwritable."""

    def __init__(self, path: Path, subjects: Subjects) -> None:
        self._directory = IdentityDirectory(path)
        try:
            self._keys = self._directory.prepare((*service_names(), *AGENTS), datetime.now(UTC))
        except OSError as error:
            raise DirectoryUnwritable(path, error) from error
        self._subjects = subjects

    @property
    def operator(self) -> OperatorLogin:
        """User and password of whoever started the landscape."""
        return self._keys.operator

    def server_configuration(self) -> str:
        """Accounts, users and auth callout for nats.conf."""
        keys = self._keys
        authorization = Authorization(
            services={name: keys.services[name].public for name in service_names()},
            system=keys.system.public,
            operator=Password(keys.operator.user, keys.operator.password),
            callout=keys.callout.public,
            issuer=keys.issuer.public,
            others={keys.services[name].public: _permissions_of_agents(name, self._subjects) for name in AGENTS},
        )
        return authorization_configuration(authorization, self._subjects)

    def environ(self, role: str) -> dict[str, str]:
        """Settings of a service that say who it is."""
        own = {"GARDENBUS_NATS_CREDENTIALS": str(self._directory.service(role))}
        if role != "identity":
            return own
        return own | {
            "GARDENBUS_CALLOUT_CREDENTIALS": str(self._directory.callout),
            "GARDENBUS_ISSUER_KEY": str(self._directory.issuer),
            "GARDENBUS_AUTHORITIES": str(self._directory.authorities),
            "GARDENBUS_SIGNING_CERTIFICATE": str(self._directory.authorities),
            "GARDENBUS_SIGNING_KEY": str(self._directory.authority_key),
            "GARDENBUS_SYSTEM_CREDENTIALS": str(self._directory.system),
        }


def _permissions_of_agents(name: str, subjects: Subjects) -> Permissions:
    """All that agents may do, for every seed and member cluster."""
    streams = [subjects.stream(stream) for stream in ("BINDINGS", "LEASES", "OBJECTS", "REPORTS")]
    calls = ("STREAM.INFO.{}", "STREAM.MSG.GET.{}", "CONSUMER.CREATE.{}.>", "CONSUMER.DELETE.{}.*", "DIRECT.GET.{}.>")
    families = ("lease.*", "report.>", "api.>", "as.>", "rejected.>")
    inbox = permissions_of(Principal("service", "identity"), subjects).subscribe
    served = (f"{subjects.prefix}.seed.*.>",) if name == "gardenlet" else ()
    return Permissions(
        (
            *("_INBOX.>", "$JS.FC.>"),
            *(f"{subjects.prefix}.{family}" for family in families),
            *(f"$JS.API.{call.format(stream)}" for call in calls for stream in streams),
        ),
        (*(subject.replace("identity", name) for subject in inbox), *served),
    )
