"""Rules of OpenID Connect presets. Source: Gardener's `pkg/apis/settings/validation` before v1.142."""

from gardenbus.apiserver.domain.validation.field_cursor import FieldCursor
from gardenbus.apiserver.domain.validation.issuers import certificates_problem, issuer_problem
from gardenbus.apiserver.domain.validation.shared import check_label_selector
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.shown_values import shown

SIGNING_ALGORITHMS = ("RS256", "RS384", "RS512", "ES256", "ES384", "ES512", "PS256", "PS384", "PS512")


def check(manifest: FieldCursor, old: Document | None) -> None:
    """Note every problem of an OpenIDConnectPreset or a ClusterOpenIDConnectPreset."""
    spec = manifest.section("spec", required=True)
    server = spec.section("server", required=True)
    server.text("clientID", required=True)
    server.text("issuerURL", required=True, rule=issuer_problem)
    if server.content != section(old or {}, "spec", "server"):
        server.text("caBundle", rule=certificates_problem)
        server.unique_texts("signingAlgs", rule=_algorithm_problem)
    spec.integer("weight", least=1, most=100, required=True)
    for selector in ("shootSelector", "projectSelector"):
        if spec.has(selector):
            check_label_selector(spec.section(selector))


def _algorithm_problem(algorithm: str) -> str:
    if algorithm in SIGNING_ALGORITHMS:
        return ""
    return f"{shown(algorithm)} is no algorithm: there are {', '.join(SIGNING_ALGORITHMS)}"
