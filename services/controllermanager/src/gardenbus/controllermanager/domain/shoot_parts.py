"""Parts of cached Shoots that loops go by, decoded alone: a callback sees each change of each shoot."""

from typing import Any

import msgspec

from gardenbus.common.api.decoding import json_decoder
from gardenbus.common.api.document import Document, StoredObject

_REFERENCE_MARKS = (b'"secretName"', b'"credentialsRef"', b'"kubeAPIServer"', b'"resourceRef"')
"""One of these stands in the spec of each Shoot or Seed that uses other objects."""


class _ShootSpecPart(msgspec.Struct, rename="camel"):
    maintenance: dict[str, Any] | None = None
    secret_binding_name: Any = None
    credentials_binding_name: Any = None


class _ExtensionsPart(msgspec.Struct):
    provider: Any = None
    networking: Any = None
    extensions: Any = None
    dns: Any = None


class _ShootStatusPart(msgspec.Struct, rename="camel"):
    last_maintenance: dict[str, Any] | None = None


_decode_spec = json_decoder(_ShootSpecPart)
_decode_status = json_decoder(_ShootStatusPart)
_decode_extensions = json_decoder(_ExtensionsPart)


def is_status_alone(old: StoredObject | None, new: StoredObject | None) -> bool:
    """True when nothing but the status, or a label, of one object has changed."""
    if old is None or new is None:
        return False
    before, after = old.parts, new.parts
    return (
        before.spec == after.spec
        and before.meta == after.meta
        and before.finalizers == after.finalizers
        and (old.uid, old.deleting_at, before.seed_name) == (new.uid, new.deleting_at, after.seed_name)
    )


def maintenance_part(shoot: StoredObject) -> Document:
    """As much of a shoot as decides when it is maintained."""
    spec = _decode_spec(b"{%b}" % shoot.parts.spec)
    last = shoot.parts.status and _decode_status(b"{%b}" % shoot.parts.status).last_maintenance
    return {
        "metadata": {
            "name": shoot.key.name,
            "namespace": shoot.key.namespace,
            "uid": shoot.uid,
            "creationTimestamp": shoot.created_at,
            "annotations": shoot.annotations,
            **({"deletionTimestamp": shoot.deleting_at} if shoot.deleting_at else {}),
        },
        "spec": {"maintenance": spec.maintenance or {}},
        "status": {"lastMaintenance": last or {}},
    }


def bindings_part(shoot: StoredObject) -> Document:
    """As much of a shoot as names its bindings."""
    spec = _decode_spec(b"{%b}" % shoot.parts.spec)
    named = {"secretBindingName": spec.secret_binding_name, "credentialsBindingName": spec.credentials_binding_name}
    return {"metadata": {"namespace": shoot.key.namespace}, "spec": named}


def extensions_part(shoot: StoredObject) -> Document:
    """As much of a shoot's spec as decides which extensions it needs."""
    spec = _decode_extensions(b"{%b}" % shoot.parts.spec)
    return {"provider": spec.provider, "networking": spec.networking, "extensions": spec.extensions, "dns": spec.dns}


def may_use_objects(user: StoredObject) -> bool:
    """False when a Shoot or Seed surely uses no other objects."""
    return any(mark in user.parts.spec for mark in _REFERENCE_MARKS)
