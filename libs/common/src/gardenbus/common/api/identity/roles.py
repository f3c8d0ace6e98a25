"""Roles that people have in the whole landscape: one ConfigMap names them, beside whatever credential they come with.

A role is neither a part of a certificate nor of a password, so that it holds for each, is taken away at once, and is
what `gardenbus auth can-i --as USER` looks at. Roles in a Project are in its `spec.members`.
"""

from collections.abc import Mapping
from typing import Literal

from gardenbus.common.api.document import Document, section
from gardenbus.common.api.identity.principals import groups_of_user
from gardenbus.common.api.keys import GARDEN_NAMESPACE, ObjectKey

LandscapeRole = Literal["operator", "viewer"]
"""`operator`: everything. `viewer`: reads everything but Secrets."""

LANDSCAPE_ROLES = ObjectKey("configmap", GARDEN_NAMESPACE, "landscape-roles")
"""Its `data` has a role for each user, or group: `{"ann@example.org": "operator", "group:system:serviceaccounts:ci":
"viewer"}`. Only operators write in its namespace."""

GROUP_PREFIX = "group:"
"""Prefix of a group in that ConfigMap; nobody carries a name that begins with it (`names`)."""


def landscape_role(roles: Document | None, user: str, groups: frozenset[str] = frozenset()) -> LandscapeRole | None:
    """The highest role of a user, by its name or its groups, in the ConfigMap; None without one.

    The groups that the name itself proves count beside `groups`. A word that is no role gives none.
    """
    given = section(roles or {}, "data")
    if not given:
        return None
    names = [f"{GROUP_PREFIX}{group}" for group in groups | groups_of_user(user)]
    if not user.startswith(GROUP_PREFIX):
        names.append(user)
    found = [given.get(name) for name in names]
    return "operator" if "operator" in found else "viewer" if "viewer" in found else None


def landscape_roles(given: Mapping[str, LandscapeRole]) -> Document:
    """The ConfigMap with these roles, to be applied; each applied one replaces the one before."""
    metadata = {"name": LANDSCAPE_ROLES.name, "namespace": LANDSCAPE_ROLES.namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": dict(given)}


def role_patch(user: str, role: LandscapeRole | None) -> Document:
    """The merge patch of the ConfigMap that gives a user a role, or takes it away."""
    return {"data": {user: role}}
