"""What a preset of OpenID Connect must say."""

from typing import Any

import pytest

from gardenbus.apiserver.domain.validation.manifest import validate
from gardenbus.common.errors import InvalidResource

CERTIFICATE = "-----BEGIN CERTIFICATE-----\nMIIBaGVsbG8gd29ybGQ=\n-----END CERTIFICATE-----\n"
VALID: dict[str, Any] = {"clientID": "me", "issuerURL": "https://there"}


def check(kind: str, server: dict[str, Any], **spec: Any) -> list[str]:
    """The fields at fault."""
    namespace = {} if kind.startswith("Cluster") else {"namespace": "garden-dev"}
    preset = {
        "apiVersion": "settings.gardener.cloud/v1alpha1",
        "kind": kind,
        "metadata": {"name": "one", **namespace},
        "spec": {"server": server, "weight": 1, **spec},
    }
    try:
        validate(preset, None)
    except InvalidResource as invalid:
        return [problem.field for problem in invalid.problems]
    return []


@pytest.mark.parametrize("kind", ["OpenIDConnectPreset", "ClusterOpenIDConnectPreset"])
def test_a_preset_names_a_client_an_issuer_and_a_weight(kind: str) -> None:
    assert check(kind, VALID) == []
    assert check(kind, VALID, shootSelector={}, projectSelector={"matchLabels": {"a": "b"}}) == []
    assert check(kind, {"issuerURL": "https://there"}) == ["spec.server.clientID"]
    assert check(kind, {"clientID": "me"}) == ["spec.server.issuerURL"]
    assert check(kind, {**VALID, "issuerURL": "http://there"}) == ["spec.server.issuerURL"]
    assert check(kind, VALID, weight=101) == ["spec.weight"]
    assert check(kind, {**VALID, "caBundle": "foo"}) == ["spec.server.caBundle"]
    assert check(kind, {**VALID, "caBundle": "-----BEGIN CERTIFICATE-----\nnone\n-----END CERTIFICATE-----"}) != []
    assert check(kind, {**VALID, "caBundle": CERTIFICATE}) == []
    assert check(kind, {**VALID, "signingAlgs": ["RS256", "ES512"]}) == []
    assert check(kind, {**VALID, "signingAlgs": ["RS256", "foo"]}) == ["spec.server.signingAlgs[1]"]
    assert check(kind, VALID, weight=None) == ["spec.weight"]
    assert check(kind, VALID, shootSelector={"matchExpressions": [{"key": "a", "operator": "Is"}]}) != []
