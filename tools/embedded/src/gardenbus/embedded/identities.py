"""Identities of an embedded landscape: the keys below D/identity, and the part of nats.conf that is made of them."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from cryptography import x509

from gardenbus.cli.local.directory import DirectoryUnwritable
from gardenbus.common.api.identity.permissions import (
    JETSTREAM_API,
    Permissions,
    permissions_of,
    service_names,
)
from gardenbus.common.api.identity.principals import Principal
from gardenbus.common.api.keys import Subjects
from gardenbus.credentials.identity_directory import LOOPBACK_NAMES, IdentityDirectory, OperatorLogin
from gardenbus.credentials.server_configuration import (
    Authorization,
    Password,
    authorization_configuration,
    tls_configuration,
)

MEMBERAGENT = "memberagent"
"""The process that enrols Seeds speaks for all of them, as a user of this server's configuration."""


class EmbeddedIdentities:
    """Keys of a landscape, made by the first `up` and kept. Raises SettingsInvalid, DirectoryUnwritable.

    `others` are users of the server's configuration beside those of every landscape. Without `has_tls` who comes in
    proves who it is all the same; `up` never does without.
    """

    def __init__(
        self, path: Path, subjects: Subjects, *, others: Mapping[str, Permissions] | None = None, has_tls: bool = True
    ) -> None:
        self._directory = IdentityDirectory(path)
        self._others = {MEMBERAGENT: _permissions_of_enrolling(subjects), **(others or {})}
        try:
            self._keys = self._directory.prepare((*service_names(), *self._others), datetime.now(UTC))
        except OSError as error:
            raise DirectoryUnwritable(path, error) from error
        self._subjects = subjects
        self._has_tls = has_tls

    @property
    def operator(self) -> OperatorLogin:
        """User and password of whoever started the landscape."""
        return self._keys.operator

    @property
    def authorities_file(self) -> Path:
        """File of the authorities that NATS' certificate is of."""
        return self._directory.authorities

    @property
    def server_certificate_version(self) -> tuple[tuple[int, int], ...]:
        """Changes whenever NATS' certificate or its key is another."""
        return tuple(map(_version, (self._directory.server_certificate, self._directory.server_key)))

    def keep_server_certificate(self) -> None:
        """Replace NATS' certificate if it ends soon or is not sound. Raises SettingsInvalid, OSError."""
        self._directory.keep_server_certificate(LOOPBACK_NAMES, datetime.now(UTC))

    def server_configuration(self) -> str:
        """TLS, accounts, users and auth callout for nats.conf."""
        keys = self._keys
        authorization = Authorization(
            services={name: keys.services[name].public for name in service_names()},
            system=keys.system.public,
            operator=Password(keys.operator.user, keys.operator.password),
            callout=keys.callout.public,
            issuer=keys.issuer.public,
            others={keys.services[name].public: permissions for name, permissions in self._others.items()},
        )
        accounts = authorization_configuration(authorization, self._subjects)
        if not self._has_tls:
            return accounts
        return tls_configuration(self._directory.server_certificate, self._directory.server_key) + accounts

    def authorities(self) -> Sequence[x509.Certificate]:
        """The authorities whose certificates let in."""
        return x509.load_pem_x509_certificates(self._directory.authorities.read_bytes())

    def environ(self, role: str) -> dict[str, str]:
        """Settings of a service's credentials and trusted authorities; gardenlets connect as themselves."""
        trust = {"GARDENBUS_NATS_CA": str(self.authorities_file)} if self._has_tls else {}
        if role == "gardenlet":
            return trust
        own = {**trust, "GARDENBUS_NATS_CREDENTIALS": str(self._directory.service(role))}
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


def _version(file: Path) -> tuple[int, int]:
    try:
        status = file.stat()
    except OSError:
        return 0, 0
    return status.st_mtime_ns, status.st_ino


def _permissions_of_enrolling(subjects: Subjects) -> Permissions:
    """Rights of the agents of enrolled Seeds, and of clusters that are shoots, on the connection that they share."""
    objects, prefix = subjects.stream("OBJECTS"), subjects.prefix
    calls = ("STREAM.INFO.{}", "STREAM.MSG.GET.{}", "CONSUMER.CREATE.{}.>", "CONSUMER.DELETE.{}.*", "DIRECT.GET.{}.>")
    families = ("report.>", "api.get.>", "api.adminkubeconfig.>", "as.*.api.get.>")
    inbox = permissions_of(Principal("service", "identity"), subjects).subscribe
    return Permissions(
        (
            *("_INBOX.>", "$JS.FC.>", f"{JETSTREAM_API}.STREAM.INFO.{subjects.stream('REPORTS')}"),
            *(f"{prefix}.{family}" for family in families),
            *(f"{JETSTREAM_API}.{call.format(objects)}" for call in calls),
        ),
        tuple(subject.replace("identity", MEMBERAGENT) for subject in inbox),
    )
