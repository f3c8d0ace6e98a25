"""Rotation of a certificate authority in its two files: every step can be cut short, and is gone through again.

| step                                            | trusted     | signs |
|-------------------------------------------------|-------------|-------|
| before                                          | old         | old   |
| the next pair is written (`ca.next.*`)          | old         | old   |
| its certificate joins those of `ca.crt`         | old and new | old   |
| its key takes the place of `ca.key`, atomically | old and new | new   |
| `finish` writes the new certificate alone       | new         | new   |

Whoever signs takes the certificate of `ca.crt` that belongs to `ca.key` (`certificates.signing_pair`), so that no two
files have to change at once. Source: Gardener's rotation of a Shoot's certificate authorities in two phases.
"""

from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import serialization

from gardenbus.common.errors import BadRequest, SettingsInvalid
from gardenbus.credentials import secret_files
from gardenbus.credentials.certificates import (
    Issued,
    belong_together,
    new_authority,
    read_certificate,
    read_key,
    signing_pair,
)


class TrustedAuthorities(NamedTuple):
    """The authorities that are trusted, and the one that signs."""

    trusted: tuple[x509.Certificate, ...]
    signing: x509.Certificate

    @property
    def is_rotating(self) -> bool:
        """True between the beginning of a rotation and its end."""
        return len(self.trusted) > 1

    @property
    def signing_pem(self) -> str:
        """The certificate of the authority that signs."""
        return self.signing.public_bytes(serialization.Encoding.PEM).decode()


class AuthorityRotation:
    """The files of an authority. Methods raise SettingsInvalid for files that cannot be used, and OSError."""

    def __init__(self, certificates: Path, key: Path) -> None:
        self._certificates = certificates
        self._key = key
        self._next_certificate = certificates.with_name("ca.next.crt")
        self._next_key = key.with_name("ca.next.key")

    def read(self) -> TrustedAuthorities:
        """The authorities that the files hold."""
        try:
            content = self._certificates.read_bytes()
            signing = signing_pair(content, self._key.read_bytes())
            return TrustedAuthorities(
                tuple(x509.load_pem_x509_certificates(content)), read_certificate(signing.certificate)
            )
        except BadRequest as error:
            raise SettingsInvalid((f"{self._certificates}: {error.message}",)) from error
        except OSError as error:
            raise SettingsInvalid((f"{error.filename}: {error.strerror}",)) from error

    def begin(self, now: datetime) -> TrustedAuthorities:
        """Have a new authority sign beside which the old one is still trusted; goes on where it was cut short."""
        before = self.read()
        if before.is_rotating and not self._next_key.exists():
            self._next_certificate.unlink(missing_ok=True)
            return before
        pair = self._next_pair() or self._new_pair(before, now)
        added = read_certificate(pair.certificate)
        if added not in before.trusted:
            self._trust(*before.trusted, added)
        self._next_key.replace(self._key)
        self._next_certificate.unlink(missing_ok=True)
        return self.read()

    def finish(self) -> TrustedAuthorities:
        """Trust nobody but the authority that signs."""
        self._trust(self.read().signing)
        return self.read()

    def _next_pair(self) -> Issued | None:
        """The pair that was written by one that was cut short; None where it is not whole."""
        try:
            pair = Issued(self._next_certificate.read_bytes(), self._next_key.read_bytes())
            is_whole = belong_together(read_certificate(pair.certificate), read_key(pair.key))
        except (OSError, BadRequest):
            return None
        return pair if is_whole else None

    def _new_pair(self, before: TrustedAuthorities, now: datetime) -> Issued:
        name = before.signing.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)
        pair = new_authority(str(name[0].value) if name else "gardenbus", now)
        secret_files.write(self._next_key, pair.key)
        secret_files.write(self._next_certificate, pair.certificate)
        return pair

    def _trust(self, *certificates: x509.Certificate) -> None:
        content = b"".join(each.public_bytes(serialization.Encoding.PEM) for each in certificates)
        secret_files.write(self._certificates, content)
