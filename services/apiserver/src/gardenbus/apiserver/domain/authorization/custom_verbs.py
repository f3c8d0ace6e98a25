"""Changes within an object that take a verb of their own, besides the one to write it.

| change | verb |
|---|---|
| `spec.seedName` of a Shoot, also at its creation | `bind` (Gardener's `shoots/binding`) |
| `spec.tolerations.whitelist` of a Project | `modify-spec-tolerations-whitelist` |
| `scheduling.gardenbus.io/max-priority` of a Project; a priority of a Shoot above it | `prioritize` (no role has it) |
| human members or the owner of a Project, unless by its owner | `manage-members` |
| `spec.kubernetes`, `.machineImages`, `.providerConfig` of a NamespacedCloudProfile | `modify-spec-<field>` |
| what a SecretBinding or CredentialsBinding refers to in another namespace | `refer` (no role has it) |

What a binding refers to cannot be deleted, so nobody shall hold others' Secrets. Gardener takes whoever may read them.
Within its namespace a binding or Shoot refers to what its writer may read, as in Gardener: only what is named newly is
looked at. `bind` and `refer` belong to authorization; the others are checked by admission plug-ins, which can be
switched: `prioritize` by SchedulingRequirements, the rest by CustomVerbAuthorizer. Source: Gardener's plugin of that
name, and the `binding` subresource of Shoots.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from gardenbus.apiserver.domain.authorization.actions import BIND, Action, Permit, Rejection, Requester
from gardenbus.apiserver.domain.authorization.project_roles import MANAGE_MEMBERS, is_meant
from gardenbus.apiserver.domain.rejection_messages import RejectionMessage
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import mappings
from gardenbus.common.api.garden.credentials_bindings import references_of
from gardenbus.common.api.garden.named_references import named_references
from gardenbus.common.api.garden.scheduling_order import MAX_PRIORITY
from gardenbus.common.api.garden.scheduling_requirements import resolved_of
from gardenbus.common.api.identity.principals import SERVICE_ACCOUNT_PREFIX
from gardenbus.common.api.keys import ObjectKey

REFER = "refer"
PRIORITIZE = "prioritize"
TAKES_VERB = RejectionMessage('user "{user}" cannot change {field} of {object}: that takes the verb {verb}')
MODIFY_WHITELIST = "modify-spec-tolerations-whitelist"
_PROFILE_FIELDS = {
    "kubernetes": "modify-spec-kubernetes",
    "machineImages": "modify-spec-machineimages",
    "providerConfig": "modify-spec-providerconfig",
}


def check_change(old: Document | None, new: Document, requester: Requester, permit: Permit) -> Rejection | None:
    """Reject a bind, or a reference, that the requester may not make; `old` is None for a new object."""
    if permit.verbs is None:
        return None
    verb = _rejection(_of_authorization(old or {}, new), new, requester, permit)
    return verb or _unreadable(old or {}, new, requester, permit)


def check_verbs(old: Document | None, new: Document, requester: Requester, permit: Permit) -> Rejection | None:
    """Reject a change of a Project or profile whose verb the requester does not have; `old` is None for a new one."""
    return None if permit.verbs is None else _rejection(_of_plugin(old or {}, new, requester), new, requester, permit)


def _rejection(
    needed: Sequence[tuple[str, str]], new: Document, requester: Requester, permit: Permit
) -> Rejection | None:
    for verb, field in needed:
        if not permit.has(verb):
            return Rejection(verb, TAKES_VERB(user=requester.user, field=field, object=_shown(new), verb=verb))
    return None


def _unreadable(old: Document, new: Document, requester: Requester, permit: Permit) -> Rejection | None:
    """Reject a reference to something that the requester may not read."""
    if permit.readable is None:
        return None
    for key in sorted(set(_references(new)) - set(_references(old))):
        if key.kind not in permit.readable:
            detail = f'{_shown(new)} cannot refer to {key}: user "{requester.user}" cannot {Action.on("get", key)}'
            return Rejection("get", detail)
    return None


def _references(document: Document) -> Iterable[ObjectKey]:
    """The objects that somebody makes use of by a Shoot or a binding."""
    match document.get("kind"):
        case "Shoot":
            return [each.key for each in named_references(document)]
        case "SecretBinding" | "CredentialsBinding":
            return map(ObjectKey.from_stored, references_of(document))
        case _:
            return ()


def _shown(document: Document) -> str:
    metadata = section(document, "metadata")
    name = "/".join(str(part) for part in (metadata.get("namespace"), metadata.get("name")) if part)
    return f"{str(document.get('kind')).lower()} {name}"


def _of_authorization(old: Document, new: Document) -> list[tuple[str, str]]:
    match new.get("kind"):
        case "Shoot":
            before, after = (section(one, "spec").get("seedName") or "" for one in (old, new))
            return [(BIND, "spec.seedName")] if before != after else []
        case "SecretBinding" | "CredentialsBinding":
            named = set(_foreign_references(new)) - set(_foreign_references(old))
            return [(REFER, "references to another namespace")] if named else []
        case _:
            return []


def _of_plugin(old: Document, new: Document, requester: Requester) -> list[tuple[str, str]]:
    before, after = section(old, "spec"), section(new, "spec")
    match new.get("kind"):
        case "Project":
            return _of_project(before, after, requester) + _of_cap(old, new)
        case "Shoot":
            is_raised = resolved_of(old).priority != resolved_of(new).priority
            return [(PRIORITIZE, f"priority {resolved_of(new).priority}")] if is_raised else []
        case "NamespacedCloudProfile":
            return [
                (verb, f"spec.{field}")
                for field, verb in _PROFILE_FIELDS.items()
                if (before.get(field) or None) != (after.get(field) or None)
            ]
        case _:
            return []


def _of_cap(old: Document, new: Document) -> list[tuple[str, str]]:
    before, after = (section(one, "metadata", "annotations").get(MAX_PRIORITY) for one in (old, new))
    return [(PRIORITIZE, f"metadata.annotations[{MAX_PRIORITY}]")] if before != after else []


def _foreign_references(binding: Document) -> Sequence[ObjectKey]:
    """References of a binding to another namespace than its own."""
    own = section(binding, "metadata").get("namespace")
    return [key for key in _references(binding) if key.namespace != own]


def _of_project(before: Document, after: Document, requester: Requester) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    if _whitelist(before) != _whitelist(after):
        found.append((MODIFY_WHITELIST, "spec.tolerations.whitelist"))
    owner, owner_after = section(before, "owner"), section(after, "owner")
    if is_meant(owner or owner_after, requester.user, requester.groups):
        return found
    if owner and owner != owner_after:
        found.append((MANAGE_MEMBERS, "spec.owner"))
    if _people(before) != _people(after):
        found.append((MANAGE_MEMBERS, "spec.members"))
    return found


def _whitelist(spec: Document) -> Any:
    return section(spec, "tolerations").get("whitelist") or []


def _people(spec: Document) -> list[Document]:
    """The members that are no service accounts, but for the owner, whose change takes the verb by itself."""
    owner = section(spec, "owner")
    members = [member for member in mappings(spec.get("members")) if not _is_service_account(member)]
    return [member for member in members if any(member.get(one) != owner.get(one) for one in ("kind", "name"))]


def _is_service_account(member: Document) -> bool:
    return member.get("kind") == "ServiceAccount" or str(member.get("name") or "").startswith(SERVICE_ACCOUNT_PREFIX)
