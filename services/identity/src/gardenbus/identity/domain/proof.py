"""Check of a certificate that comes over a connection: it is the token, and its key has signed the server's nonce.

The server need not request client certificates in TLS (one that does so shuts out who has none yet), and nothing secret
goes over the wire: what was overheard is of no use with another nonce.
"""

import base64
import binascii
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec

from gardenbus.common.api.identity.principals import Principal
from gardenbus.common.errors import BadRequest
from gardenbus.credentials.certificates import certified_principal, issued_at, serial_of


class Proven(NamedTuple):
    """Principal that showed a certificate, its serial number, when it ends and when it was issued."""

    principal: Principal
    serial: str
    expires: datetime
    issued_at: datetime


def check(token: str, signature: str, nonce: str, authorities: Sequence[x509.Certificate], now: datetime) -> Proven:
    """Principal that sent a token and a signature. Raises BadRequest, saying what is wrong with them."""
    certificate = _certificate(token)
    principal = certified_principal(certificate, authorities, now)
    key = certificate.public_key()
    if not nonce or not isinstance(key, ec.EllipticCurvePublicKey):
        raise BadRequest("there is no nonce to prove the certificate's key with")
    try:
        key.verify(_unpadded(signature), nonce.encode(), ec.ECDSA(hashes.SHA256()))
    except InvalidSignature as error:
        raise BadRequest("the nonce was not signed with the certificate's key") from error
    return Proven(principal, serial_of(certificate), certificate.not_valid_after_utc, issued_at(certificate))


def _certificate(token: str) -> x509.Certificate:
    try:
        return x509.load_der_x509_certificate(base64.b64decode(token, validate=True))
    except (binascii.Error, ValueError) as error:
        raise BadRequest("the token is no certificate") from error


def _unpadded(text: str) -> bytes:
    try:
        return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except (binascii.Error, ValueError) as error:
        raise BadRequest("the signature is not base64") from error
