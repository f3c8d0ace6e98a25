"""Changes within an object that take a verb of their own, besides the one to write it.

| change | verb |
|---|---|
| `spec.seedName` of a Shoot, also at its creation | `bind` (Gardener's `shoots/binding`) |
| `spec.tolerations.whitelist` of a Project | `modify-spec-tolerations-whitelist` |
| human members or the owner of a Project, unless by its owner | `manage-members` |
| `spec.kubernetes`, `.machineImages`, `.providerConfig` of a NamespacedCloudProfile | `modify-spec-<field>` |
| what a SecretBinding or CredentialsBinding refers to in another namespace | `refer` (no role has it) |

What a binding refers to cannot be deleted, so nobody shall hold others' Secrets. Gardener takes whoever may read them.
Source: Gardener's admission plugin CustomVerbAuthorizer, and the `binding` subresource of Shoots.
"""

from collections.abc import Sequence
from typing import Any

from gardenbus.apiserver.domain.authorization.actions import BIND, Permit, Rejection, Requester
from gardenbus.apiserver.domain.authorization.project_roles import (
    MANAGE_MEMBERS,
    SERVICE_ACCOUNT_PREFIX,
    is_meant,
)
from gardenbus.apiserver.domain.project_owners import with_owner_as_member
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.garden.credentials_bindings import references_of
from gardenbus.common.api.garden.profile_parts import mappings
from gardenbus.common.api.keys import ObjectKey

REFER = "refer"
MODIFY_WHITELIST = "modify-spec-tolerations-whitelist"
_PROFILE_FIELDS = {
    "kubernetes": "modify-spec-kubernetes",
    "machineImages": "modify-spec-machineimages",
    "providerConfig": "modify-spec-providerconfig",
}


def check_change(old: Document | None, new: Document, requester: Requester, permit: Permit) -> Rejection | None:
    """Reject a change whose verb the requester does not have; `old` is None for a new object."""
    if permit.verbs is None:
        return None
    for verb, field in _needed_verbs(old or {}, new, requester):
        if not permit.has(verb):
            metadata = section(new, "metadata")
            name = "/".join(str(part) for part in (metadata.get("namespace"), metadata.get("name")) if part)
            what = f"{str(new.get('kind')).lower()} {name}"
            return Rejection(
                verb, f'user "{requester.user}" cannot change {field} of {what}: that takes the verb {verb}'
            )
    return None


def _needed_verbs(old: Document, new: Document, requester: Requester) -> list[tuple[str, str]]:
    before, after = section(old, "spec"), section(new, "spec")
    match new.get("kind"):
        case "Shoot":
            changed = (before.get("seedName") or "") != (after.get("seedName") or "")
            return [(BIND, "spec.seedName")] if changed else []
        case "Project":
            return _of_project(before, after, requester)
        case "SecretBinding" | "CredentialsBinding":
            named = set(_foreign_references(new)) - set(_foreign_references(old))
            return [(REFER, "references to another namespace")] if named else []
        case "NamespacedCloudProfile":
            return [
                (verb, f"spec.{field}")
                for field, verb in _PROFILE_FIELDS.items()
                if (before.get(field) or None) != (after.get(field) or None)
            ]
        case _:
            return []


def _foreign_references(binding: Document) -> Sequence[str]:
    """References of a binding to another namespace than its own."""
    own = section(binding, "metadata").get("namespace")
    return [each for each in references_of(binding) if ObjectKey.from_stored(each).namespace != own]


def _of_project(before: Document, after: Document, requester: Requester) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    if _whitelist(before) != _whitelist(after):
        found.append((MODIFY_WHITELIST, "spec.tolerations.whitelist"))
    owner = section(before, "owner")
    if owner and is_meant(owner, requester.user, requester.groups):
        return found
    if owner and owner != section(after, "owner"):
        found.append((MANAGE_MEMBERS, "spec.owner"))
    if _people(before) != _people(after):
        found.append((MANAGE_MEMBERS, "spec.members"))
    return found


def _whitelist(spec: Document) -> Any:
    return section(spec, "tolerations").get("whitelist") or []


def _people(spec: Document) -> list[Document]:
    """The members that are no service accounts, with the owner, who becomes one."""
    return [member for member in mappings(with_owner_as_member(spec).get("members")) if not _is_service_account(member)]


def _is_service_account(member: Document) -> bool:
    return member.get("kind") == "ServiceAccount" or str(member.get("name") or "").startswith(SERVICE_ACCOUNT_PREFIX)
