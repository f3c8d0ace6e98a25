"""Files of credentials as the command line finds them: what they hold, until when, and for whom.

| content                                      | kind          | who one is                                   |
|----------------------------------------------|---------------|----------------------------------------------|
| `{"user": …, "password": …}`, or a kubeconfig with that as token | `login` | its user                       |
| an nkey seed (`SU…`)                         | `nkey`        | the context's `user`                         |
| a certificate and its private key, PEM       | `certificate` | the certificate's name                       |
| `user:password`, or a token                  | `address`     | nobody in particular: a NATS without identities |
"""

import re
from datetime import datetime
from pathlib import Path
from typing import Literal

import msgspec

from gardenbus.common.api.decoding import decode_json
from gardenbus.common.api.identity.issued_credentials import login_in
from gardenbus.common.errors import BadRequest
from gardenbus.common.ports.clock import parse_timestamp

Kind = Literal["login", "nkey", "certificate", "address"]

_NKEY = re.compile(rb"SU[A-Z2-7]{56}")


class _Expiring(msgspec.Struct):
    expires: str = ""


def kind_of(file: Path) -> Kind:
    """The kind of a file's content. Raises BadRequest when it cannot be read."""
    content = _content(file).strip()
    if login_in(content) is not None:
        return "login"
    if b"-----BEGIN CERTIFICATE-----" in content:
        return "certificate"
    return "nkey" if _NKEY.fullmatch(content) else "address"


def expiry_of(file: Path) -> datetime | None:
    """The end of what a file holds; None where it does not say. Raises BadRequest."""
    content = _content(file)
    match kind_of(file):
        case "login":
            try:
                return parse_timestamp(decode_json(login_in(content) or b"", _Expiring).expires)
            except msgspec.MsgspecError:
                return None
        case "certificate":
            from gardenbus.credentials.certificates import read_certificate  # noqa: PLC0415  slow to import

            return read_certificate(content).not_valid_after_utc
        case _:
            return None


def _content(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise BadRequest(f"credentials: {file} cannot be read: {error}") from error
