"""Roles that people have in the whole landscape: one ConfigMap names them, beside whatever credential they come with.

A role is neither a part of a certificate nor of a password, so that it holds for each, is taken away at once, and is
what `gardenbus auth can-i --as USER` looks at. Roles in a Project are in its `spec.members`.
"""

from collections.abc import Mapping
from typing import Literal

from gardenbus.common.api.document import Document, section
from gardenbus.common.api.keys import GARDEN_NAMESPACE, ObjectKey

LandscapeRole = Literal["operator", "viewer"]
"""`operator`: everything. `viewer`: reads everything but Secrets."""

LANDSCAPE_ROLES = ObjectKey("configmap", GARDEN_NAMESPACE, "landscape-roles")
"""Its `data` has a role for each user: `{"ann@example.org": "operator"}`. Only operators write in its namespace."""


def landscape_role(roles: Document | None, user: str) -> LandscapeRole | None:
    """The role of a user in the ConfigMap, None without one, or with a word that is no role."""
    match section(roles or {}, "data").get(user):
        case "operator":
            return "operator"
        case "viewer":
            return "viewer"
        case _:
            return None


def landscape_roles(given: Mapping[str, LandscapeRole]) -> Document:
    """The ConfigMap with these roles, to be applied; each applied one replaces the one before."""
    metadata = {"name": LANDSCAPE_ROLES.name, "namespace": LANDSCAPE_ROLES.namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": dict(given)}


def role_patch(user: str, role: LandscapeRole | None) -> Document:
    """The merge patch of the ConfigMap that gives a user a role, or takes it away."""
    return {"data": {user: role}}
