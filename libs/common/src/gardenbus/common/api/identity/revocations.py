"""The ConfigMap of revoked credentials: a line for each user or serial number of a certificate, when and why."""

import re
from datetime import UTC, datetime

from gardenbus.common.api.document import Document
from gardenbus.common.api.keys import GARDEN_NAMESPACE, ObjectKey

REVOCATIONS = ObjectKey("configmap", GARDEN_NAMESPACE, "revoked-credentials")

_SERIAL = re.compile(r"[0-9a-f]{16,40}")


def is_serial(text: str) -> bool:
    """True for what can be the serial number of a certificate (lower-case hexadecimal)."""
    return bool(_SERIAL.fullmatch(text))


def revocation(name: str, at: datetime, reason: str) -> Document:
    """The ConfigMap with one line, which is also a merge patch of it."""
    line = f"{at.astimezone(UTC).isoformat().replace('+00:00', 'Z')} {reason}".strip()
    metadata = {"name": REVOCATIONS.name, "namespace": REVOCATIONS.namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {name: line}}
