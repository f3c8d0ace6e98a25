"""The owner of a project, who is always one of its members.

Source: Gardener's `plugin/pkg/project/mutator`.
"""

from collections.abc import Sequence

from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import mappings

OWNER = "owner"
OWNERS_ROLES: Sequence[str] = ("admin", OWNER)
"""`role` and `roles` of an owner who was no member."""
_ROLES = {"role", "roles"}
RBAC_GROUP = "rbac.authorization.k8s.io"


def subject_of_user(user: str) -> Document:
    """A user as a Subject of rbac."""
    return {"apiGroup": RBAC_GROUP, "kind": "User", "name": user}


def owner_of_members(spec: Document) -> Document | None:
    """The first member with the role `owner`, as a Subject without nulls, which an apply takes off."""
    for member in mappings(spec.get("members")):
        further: object = member.get("roles")
        if member.get("role") == OWNER or (isinstance(further, list) and OWNER in further):
            return {name: value for name, value in member.items() if name not in _ROLES and value is not None}
    return None


def with_owner_as_member(spec: Document) -> Document:
    """A project's spec, whose owner is a member; the same spec where that is so, or where nothing can be read."""
    owner, members = section(spec, "owner"), spec.get("members")
    if not owner.get("name") or not (members is None or isinstance(members, list)):
        return spec
    listed = mappings(members)
    if any(_who(member) == _who(owner) for member in listed):
        return spec
    role, *_ = OWNERS_ROLES
    return {**spec, "members": [*(members or ()), {**owner, "role": role, "roles": list(OWNERS_ROLES)}]}


def _who(subject: Document) -> tuple[object, ...]:
    return subject.get("kind"), subject.get("name"), subject.get("namespace") or ""
