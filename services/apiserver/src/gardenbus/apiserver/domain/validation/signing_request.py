"""Rules of CertificateSigningRequests. Source: Kubernetes' `pkg/apis/certificates/validation`."""

from gardenbus.apiserver.domain.validation.field_cursor import FieldCursor
from gardenbus.common.api.document import Document
from gardenbus.common.api.identity.signing_requests import LONGEST_SECONDS, SHORTEST_SECONDS, decoded

LONGEST_REQUEST = 16 * 1024
"""Characters of a request; one for an elliptic curve has some 500."""

MOST_USAGES = 10
_BEGINNING = b"-----BEGIN CERTIFICATE REQUEST-----"


def check(manifest: FieldCursor, _old: Document | None) -> None:
    """Note every problem of a request but its signature, which is checked where it is signed."""
    spec = manifest.section("spec", required=True)
    spec.text("request", required=True, rule=_request_problem)
    spec.text("signerName", required=True)
    spec.unique_texts("usages")
    if spec and not spec.content.get("usages"):
        spec.add_error("usages", "is needed: client auth, digital signature, key encipherment")
    spec.integer("expirationSeconds", least=SHORTEST_SECONDS, most=LONGEST_SECONDS)


def _request_problem(text: str) -> str:
    if len(text) > LONGEST_REQUEST:
        return f"has {len(text)} characters, {LONGEST_REQUEST} are allowed"
    if not decoded(text).lstrip().startswith(_BEGINNING):
        return "must be a PEM block CERTIFICATE REQUEST, in base64"
    return ""
