"""The authority that signs, from two files."""

from datetime import datetime, timedelta
from pathlib import Path

from gardenbus.common.api.identity.signing_requests import SigningRequest
from gardenbus.common.errors import BadRequest, SettingsInvalid
from gardenbus.credentials.certificates import CLIENT_LIFE, Authority, signing_pair


class SigningAuthority:
    """Signs requests. The files are read anew for each certificate: they may be rotated.

    Raises SettingsInvalid at once when they cannot be used.
    """

    def __init__(self, certificate: Path, key: Path, life: timedelta = CLIENT_LIFE) -> None:
        self._certificate = certificate
        self._key = key
        self._life = life
        try:
            self._authority()
        except (OSError, BadRequest) as error:
            raise SettingsInvalid((f"GARDENBUS_SIGNING_KEY: {key}: {error}",)) from error

    def sign(self, request: SigningRequest, now: datetime) -> bytes:
        """The certificate for a request; one for a longer life than there is gets that. Raises BadRequest."""
        wanted = timedelta(seconds=request.expiration_seconds) if request.expiration_seconds else self._life
        try:
            return self._authority().sign_request(request.pem, now, min(wanted, self._life))
        except OSError as error:
            raise BadRequest(f"the authority's files cannot be read: {error}") from error

    def _authority(self) -> Authority:
        return Authority(signing_pair(self._certificate.read_bytes(), self._key.read_bytes()))
