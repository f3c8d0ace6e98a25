"""Rotation of an agent's client certificate: when it is renewed, and with which request.

The point is drawn anew for each certificate, so that many agents that came up together do not renew together. Source:
client-go's `util/certificate` (70 to 90 % of the life), which Gardener's gardenlet uses.
"""

from datetime import datetime, timedelta
from typing import Any

from gardenbus.common.api.conditions import conditions_of, get_condition
from gardenbus.common.api.configuration.gardenlet import DEFAULT_CERTIFICATE, CertificateSettings
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.garden.shoot_operations import OPERATION
from gardenbus.common.api.identity.principals import Principal
from gardenbus.common.api.identity.signing_requests import (
    DENIED,
    FAILED,
    LONGEST_SECONDS,
    RENEWALS,
    SHORTEST_SECONDS,
    decoded,
)

REQUEST_TIMEOUT = timedelta(minutes=15)
"""Time after which a request that nobody has decided on is replaced by one with a new key. Source: client-go."""

_DIGEST_LETTERS = 40


def renewal_at(
    begins: datetime, ends: datetime, draw: float, settings: CertificateSettings = DEFAULT_CERTIFICATE
) -> datetime:
    """The time at which a certificate is renewed; `draw` is a number of [0, 1)."""
    earliest, latest = settings.renewed_from_percent, settings.renewed_until_percent
    return begins + (ends - begins) * ((earliest + (latest - earliest) * draw) / 100)


def expiration_seconds(settings: CertificateSettings) -> int | None:
    """Life to request for a certificate; None leaves it to the signer."""
    if settings.validity is None:
        return None
    return max(SHORTEST_SECONDS, min(LONGEST_SECONDS, int(settings.validity.total_seconds())))


def request_name(principal: Principal, digest: str) -> str:
    """The name of the request for a key (its digest in hexadecimal): sent twice it is the same request."""
    kind = "seed" if principal.role == "gardenlet" else "member"
    return f"{kind}-csr-{digest[:_DIGEST_LETTERS]}"


def is_renewal_demanded(seed: Document | None) -> bool:
    """True while an annotation on the Seed (or MemberCluster) demands a new certificate."""
    return section(seed or {}, "metadata", "annotations").get(OPERATION) in RENEWALS


def issued_certificate(request: Document) -> bytes:
    """The certificate of a request, PEM; empty while there is none."""
    return decoded(section(request, "status").get("certificate"))


def rejection_of(request: Document) -> str:
    """Reason and message of a request that was denied or has failed; "" for another."""
    for kind in (DENIED, FAILED):
        condition: dict[str, Any] | None = get_condition(conditions_of(request), kind)
        if condition is not None:
            return f"{condition.get('reason')}: {condition.get('message')}"
    return ""
