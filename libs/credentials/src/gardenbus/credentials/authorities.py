"""The certificate authorities that are trusted, from a file that may change while it is used."""

from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import serialization

from gardenbus.common.errors import SettingsInvalid


class AuthoritiesFile:
    """Certificates of a PEM file; read anew when the file is another. Raises SettingsInvalid when it is none at first.

    A file that becomes unreadable later changes nothing: those that were trusted last stay so.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._version = (0, 0)
        self._certificates: tuple[x509.Certificate, ...] = ()
        self()
        if not self._certificates:
            raise SettingsInvalid((f"{file}: no certificate of an authority can be read",))

    def __call__(self) -> tuple[x509.Certificate, ...]:
        """The certificates."""
        try:
            status = self._file.stat()
            version = (status.st_mtime_ns, status.st_ino)
            if version != self._version:
                self._certificates = tuple(x509.load_pem_x509_certificates(self._file.read_bytes()))
                self._version = version
        except (OSError, ValueError):
            pass
        return self._certificates

    def pem(self) -> str:
        """The certificates as text."""
        return "".join(each.public_bytes(serialization.Encoding.PEM).decode() for each in self())
