"""SecretBindings and CredentialsBindings: the credentials and quotas that they refer to.

They are stored as they were sent: what cannot be a name of an object is no reference.
"""

from collections.abc import Sequence
from typing import Any

from gardenbus.common.api.document import Document, section
from gardenbus.common.api.garden.quotas import quota_keys
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.api.names import NAME

BINDING_KINDS = ("secretbinding", "credentialsbinding")

CREDENTIALS_KINDS = ("secret", "internalsecret", "workloadidentity")
"""Kinds that bindings refer to as credentials; a SecretBinding to the first alone."""


def credentials_of(binding: Document) -> ObjectKey | None:
    """The credentials that a binding refers to; None where nothing can be read."""
    is_secret_binding = binding.get("kind") == "SecretBinding"
    reference = section(binding, "secretRef" if is_secret_binding else "credentialsRef")
    kind = "secret" if is_secret_binding else str(reference.get("kind") or "").lower()
    namespace = section(binding, "metadata").get("namespace")
    return referred(kind, reference, namespace) if kind in CREDENTIALS_KINDS else None


def references_of(binding: Document) -> tuple[str, ...]:
    """All that a binding refers to, as `ObjectKey.stored`."""
    credentials = credentials_of(binding)
    keys = [*(() if credentials is None else (credentials,)), *quota_keys(binding)]
    return tuple(dict.fromkeys(key.stored for key in keys))


def provider_types(binding: Document) -> Sequence[str]:
    """The provider types that a binding is for: `provider.type` may name several, with commas."""
    stated: Any = section(binding, "provider").get("type")
    return [name for part in stated.split(",") if (name := part.strip())] if isinstance(stated, str) else []


def referred(kind: str, reference: Document, default: object) -> ObjectKey | None:
    """The object of this kind that a reference names, in the default namespace unless it says one; else None."""
    named, within = name_of(reference.get("name")), name_of(reference.get("namespace") or default)
    return ObjectKey(kind, within, named) if named and within else None


def name_of(value: object) -> str:
    """The value, where it can be a name of an object; "" otherwise."""
    return value if isinstance(value, str) and NAME.fullmatch(value) else ""
