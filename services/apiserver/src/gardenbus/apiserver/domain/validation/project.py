"""The rules of Projects. Source: Gardener's `pkg/api/core/validation/project.go`, for the fields that are read here."""

import re
from collections.abc import Sequence

from gardenbus.apiserver.domain.validation.field_cursor import FieldCursor
from gardenbus.apiserver.domain.validation.metadata import label_problem, subdomain_problem
from gardenbus.apiserver.domain.validation.shared import check_label_selector, check_requirements, check_tolerations
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import only_text
from gardenbus.common.api.garden.scheduling_order import MAX_PRIORITY, max_priority_problem
from gardenbus.common.api.garden.scheduling_requirements import DEFAULTS
from gardenbus.common.api.identity.principals import SERVICE_ACCOUNT_PREFIX
from gardenbus.common.api.keys import GARDEN_NAMESPACE
from gardenbus.common.api.shown_values import shown

ROLES = ("owner", "admin", "viewer", "uam", "serviceaccountmanager")
RESERVED_NAMESPACES = ("gardener-system-seed-lease", "gardener-system-shoot-issuer", "gardener-system-public")
SUBJECT_KINDS = ("User", "Group", "ServiceAccount")

_NAMESPACE_AND_NAME = 2
_COLONS = 3
_EXTENSION_ROLE = "extension:"
_LONGEST_EXTENSION_ROLE = 20
_RBAC = "rbac.authorization.k8s.io"


def check(manifest: FieldCursor, old: Document | None) -> None:
    """Note every problem of a Project; its namespace stays."""
    _check_scheduling(manifest, old)
    spec, before = manifest.section("spec"), section(old or {}, "spec")
    if not spec:
        if before.get("namespace"):
            manifest.add_error("spec.namespace", "cannot be taken away: a project keeps its namespace")
        return
    spec.text("namespace", rule=label_problem)
    members, owner = spec.entries("members"), spec.section("owner")
    for field in ("defaults", "whitelist"):
        check_tolerations(spec.section("tolerations"), field)
    if spec.content.get("members") != before.get("members"):
        _check_members(members)
    if spec.content.get("owner") != before.get("owner") and owner:
        _check_subject(owner)
    if spec.content.get("createdBy") != before.get("createdBy") and (creator := spec.section("createdBy")):
        _check_subject(creator)
    if spec.content.get("tolerations") != before.get("tolerations"):
        _check_default_tolerations(spec.section("tolerations"))
    if spec.content.get("dualApprovalForDeletion") != before.get("dualApprovalForDeletion"):
        _check_dual_approval(spec)
    _check_texts(spec, before)
    if old is None:
        spec.text("namespace", rule=_namespace_problem)
    else:
        _check_update(spec, before)


_PLAIN_TEXT = re.compile(r"[A-Za-z0-9 .,:\-_/\\]*")
"""Characters that Gardener takes in texts of a Project (`validateProjectSpec`): none that steers a terminal."""


def _check_texts(spec: FieldCursor, before: Document) -> None:
    for field in ("description", "purpose"):
        text = spec.content.get(field)
        if text == before.get(field):
            continue
        if text == "":
            spec.add_error(field, "is empty: write some text, or leave it out")
        elif isinstance(text, str) and not _PLAIN_TEXT.fullmatch(text):
            spec.add_error(field, "takes letters, digits, blanks, and . , : - _ / \\ alone")


def _check_update(spec: FieldCursor, before: Document) -> None:
    spec.same_as(before, "namespace", "a project keeps its namespace")
    spec.same_as(before, "createdBy", "its creator does not change")
    if section(before, "owner") and not spec.has("owner"):
        spec.add_error("owner", "cannot be taken away: name another one")


def _namespace_problem(namespace: str) -> str:
    if namespace in RESERVED_NAMESPACES:
        return f"{namespace} is the garden's own: {', '.join(RESERVED_NAMESPACES)} are no project's"
    if namespace != GARDEN_NAMESPACE and not namespace.startswith(f"{GARDEN_NAMESPACE}-"):
        return f"must be {GARDEN_NAMESPACE}, or begin with {GARDEN_NAMESPACE}-, as {GARDEN_NAMESPACE}-{namespace[:40]}"
    return ""


def _check_scheduling(manifest: FieldCursor, old: Document | None) -> None:
    """Note what is wrong with the defaults and the greatest priority of the project's shoots."""
    check_requirements(manifest, old, DEFAULTS)
    if problem := max_priority_problem(manifest.content):
        manifest.errors.add_error(f"metadata.annotations[{MAX_PRIORITY}]", problem)


def _check_members(members: Sequence[FieldCursor]) -> None:
    seen: set[tuple[str, ...]] = set()
    has_owner = False
    for member in members:
        _check_subject(member)
        name = only_text(member.content.get("name"))
        if (
            member.content.get("kind") == "User"
            and name.startswith(SERVICE_ACCOUNT_PREFIX)
            and name.count(":") < _COLONS
        ):
            member.add_error("name", f"must be {SERVICE_ACCOUNT_PREFIX}<namespace>:<name> for a service account")
        named = _identity_of(member)
        if named in seen:
            member.add_error("", "is a member already: write all roles in one entry, below roles")
        seen.add(named)
        owns = _check_roles(member)
        if owns and has_owner:
            member.add_error("", "there is an owner already, and a project has one")
        has_owner = has_owner or owns


def _identity_of(member: FieldCursor) -> tuple[str, ...]:
    """Kind, namespace and name of a member; a service account may be written as the user that it is."""
    kind, namespace, name = (only_text(member.content.get(field)) for field in ("kind", "namespace", "name"))
    account = name.removeprefix(SERVICE_ACCOUNT_PREFIX).split(":") if name.startswith(SERVICE_ACCOUNT_PREFIX) else ()
    if kind == "User" and len(account) == _NAMESPACE_AND_NAME:
        return "ServiceAccount", *account
    return kind, namespace, name


def _check_roles(member: FieldCursor) -> bool:
    """Check the roles of a member; true when owner is one of them."""
    role = member.text("role", rule=_role_problem)
    roles = member.unique_texts("roles", rule=_role_problem)
    return "owner" in (role, *(each for _, each in roles))


def _role_problem(role: str) -> str:
    if role in ROLES:
        return ""
    if not role.startswith(_EXTENSION_ROLE):
        return f"{shown(role)} is no role: there are {', '.join(ROLES)}, and extension:…"
    name = role.removeprefix(_EXTENSION_ROLE)
    if len(name) > _LONGEST_EXTENSION_ROLE or name in ("", ".", "..") or "/" in name or "%" in name:
        return f"{shown(role)}: an extension's role has 1 to {_LONGEST_EXTENSION_ROLE} characters, no / and no %"
    return ""


def _check_subject(subject: FieldCursor) -> None:
    """Note problems of a subject. Without an `apiGroup` it is of the group that its kind is in."""
    kind = subject.choice("kind", SUBJECT_KINDS, required=True)
    subject.text("name", required=True)
    group, namespace = subject.text("apiGroup") or "", subject.text("namespace") or ""
    if kind is None:
        return
    of_kind = "" if kind == "ServiceAccount" else _RBAC
    if group not in ("", of_kind):
        subject.add_error("apiGroup", f"must be {of_kind}, not {shown(group)}" if of_kind else "must be left out")
    if kind == "ServiceAccount":
        subject.text("name", rule=subdomain_problem)
        subject.text("namespace", rule=label_problem)
    if kind == "ServiceAccount" and not namespace:
        subject.add_error("namespace", "is needed: that of the ServiceAccount")
    elif kind != "ServiceAccount" and namespace:
        subject.add_error("namespace", f"must be left out: a {kind} belongs to none")


def _check_default_tolerations(tolerations: FieldCursor) -> None:
    allowed = [_pair(toleration) for toleration in tolerations.entries("whitelist")]
    for toleration in tolerations.entries("defaults"):
        key, value = _pair(toleration)
        if key and (key, None) not in allowed and (key, value) not in allowed:
            toleration.add_error("", f"{shown(key)} must stand in whitelist, too: shoots may not have it otherwise")


def _pair(toleration: FieldCursor) -> tuple[object, object]:
    return toleration.content.get("key"), toleration.content.get("value")


def _check_dual_approval(spec: FieldCursor) -> None:
    taken: set[object] = set()
    for rule in spec.entries("dualApprovalForDeletion"):
        resource = rule.choice("resource", ("shoots",), required=True)
        rule.boolean("includeServiceAccounts")
        if resource in taken:
            rule.add_error("resource", "is there already")
        taken.add(resource)
        check_label_selector(rule.section("selector"))
