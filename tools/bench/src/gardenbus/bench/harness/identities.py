"""Identities of a rig: those of `up`, a user for the measurer, and certificates for as many gardenlets as come in."""

from datetime import UTC, datetime
from pathlib import Path

from gardenbus.bench.comparison import MEASURER
from gardenbus.common.adapters.nats.credentials import Credentials, read_credentials
from gardenbus.common.api.identity.permissions import JETSTREAM_API, Permissions
from gardenbus.common.api.identity.principals import Principal
from gardenbus.common.api.keys import Subjects
from gardenbus.credentials import secret_files
from gardenbus.credentials.identity_directory import IdentityDirectory
from gardenbus.embedded.identities import EmbeddedIdentities


class RigIdentities(EmbeddedIdentities):
    """See the module; the prefix is `garden`."""

    def __init__(self, path: Path, *, has_tls: bool) -> None:
        super().__init__(path, Subjects("garden"), others={MEASURER: _permissions_of_measuring()}, has_tls=has_tls)
        self._ca = str(self.authorities_file) if has_tls else None
        self.credentials = read_credentials(IdentityDirectory(path).service(MEASURER), MEASURER, self._ca)


def gardenlet_credentials(identities: Path, seeds: list[str]) -> list[Credentials]:
    """Certificates of the gardenlets of seeds, of the authority of a directory that `RigIdentities` made."""
    directory = IdentityDirectory(identities)
    authority, now, found = directory.authority(), datetime.now(UTC), list[Credentials]()
    place = identities / "gardenlets"
    secret_files.make_directory(place)
    for seed in seeds:
        principal, file = Principal("gardenlet", seed), place / f"{seed}.pem"
        issued = authority.client(principal, now)
        secret_files.write(file, issued.certificate + issued.key)
        found.append(read_credentials(file, principal, str(directory.authorities)))
    return found


def _permissions_of_measuring() -> Permissions:
    """Rights of the measurer: it publishes in the place of others, holds consumers back, and looks at streams."""
    publish = ("garden.>", f"{JETSTREAM_API}.>", "$JS.ACK.>", "$JS.FC.>", "_INBOX.>")
    return Permissions(publish, (f"{Principal('service', MEASURER).inbox}.>",))
