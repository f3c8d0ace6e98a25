"""Rules of OpenID Connect presets. Source: Gardener's `pkg/apis/settings/validation` before v1.142."""

import re
from base64 import b64decode

from gardenbus.apiserver.domain.validation.field_cursor import FieldCursor
from gardenbus.apiserver.domain.validation.shared import check_label_selector
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.shown_values import shown

SIGNING_ALGORITHMS = ("RS256", "RS384", "RS512", "ES256", "ES384", "ES512", "PS256", "PS384", "PS512")

_CERTIFICATES = re.compile(r"-----BEGIN CERTIFICATE-----\s([A-Za-z0-9+/=\s]++)-----END CERTIFICATE-----")
_ASN1_SEQUENCE = 0x30


def check(manifest: FieldCursor, old: Document | None) -> None:
    """Note every problem of an OpenIDConnectPreset or a ClusterOpenIDConnectPreset."""
    spec = manifest.section("spec", required=True)
    server = spec.section("server", required=True)
    server.text("clientID", required=True)
    server.text("issuerURL", required=True, rule=_issuer_problem)
    if server.content != section(old or {}, "spec", "server"):
        server.text("caBundle", rule=_certificates_problem)
        server.unique_texts("signingAlgs", rule=_algorithm_problem)
    spec.integer("weight", least=1, most=100, required=True)
    for selector in ("shootSelector", "projectSelector"):
        if spec.has(selector):
            check_label_selector(spec.section(selector))


def _certificates_problem(text: str) -> str:
    """Problem of certificates in PEM; what is in them is not read."""
    found = _CERTIFICATES.findall(text)
    try:
        are_encoded = all(
            b64decode("".join(one.split()), validate=True)[:1] == bytes([_ASN1_SEQUENCE]) for one in found
        )
    except ValueError:
        are_encoded = False
    return "" if found and are_encoded else "is no certificate: write it as -----BEGIN CERTIFICATE----- …"


def _algorithm_problem(algorithm: str) -> str:
    if algorithm in SIGNING_ALGORITHMS:
        return ""
    return f"{shown(algorithm)} is no algorithm: there are {', '.join(SIGNING_ALGORITHMS)}"


def _issuer_problem(text: str) -> str:
    return "" if text.startswith("https://") else f"must begin with https://, not {shown(text)}"
