"""Rules of the URLs of token issuers, and of certificates in PEM."""

import re
from base64 import b64decode

from gardenbus.common.api.shown_values import shown

_URL = re.compile(r"https://(?P<authority>[^\s/?#\[\]]+|\[[0-9A-Fa-f:.]+\](:[0-9]+)?)(/[^\s?#]*)?(?P<rest>[?#].*)?")
_CERTIFICATES = re.compile(r"-----BEGIN CERTIFICATE-----\s([A-Za-z0-9+/=\s]++)-----END CERTIFICATE-----")
_ASN1_SEQUENCE = 0x30


def issuer_problem(url: str) -> str:
    """Problem of an issuer's URL; "" when it is valid. Source: `ValidateOIDCIssuerURL` in Gardener's `shoot.go`."""
    if not (parts := _URL.fullmatch(url)):
        return f"must be a URL with the scheme https, not {shown(url)}"
    if "@" in parts["authority"]:
        return "must not contain a username or password"
    if parts["rest"]:
        return "must not contain a query or a fragment"
    return ""


def certificates_problem(text: str) -> str:
    """Problem of certificates in PEM; what is in them is not read."""
    found = _CERTIFICATES.findall(text)
    try:
        are_encoded = all(
            b64decode("".join(one.split()), validate=True)[:1] == bytes([_ASN1_SEQUENCE]) for one in found
        )
    except ValueError:
        are_encoded = False
    return "" if found and are_encoded else "is no certificate: write it as -----BEGIN CERTIFICATE----- …"
