"""Roles in a Project, from its `spec.members`, and what each may do.

| in `spec.members`       | Gardener's group                                | here                      |
|-------------------------|-------------------------------------------------|---------------------------|
| `viewer`                | `gardener.cloud:system:project-viewer:<project>`| `viewer`                  |
| `admin`                 | `gardener.cloud:system:project-member:<project>`| `member`                  |
| `owner` or `spec.owner` | `gardener.cloud:system:project:<project>`       | `admin`                   |
| `uam`                   | `gardener.cloud:system:project-uam:<project>`   | `uam`                     |
| `serviceaccountmanager` | `…:project-serviceaccountmanager:<project>`     | `serviceaccountmanager`   |

Source: Gardener's `gardener.cloud:system:project-{member,viewer,serviceaccountmanager}-aggregation` ClusterRoles
(virtual garden's access component) and the project controller's RBAC.
"""

from collections.abc import Mapping
from typing import Literal, NamedTuple, cast

from gardenbus.apiserver.domain.authorization.actions import READS, WRITES, Action
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import mappings
from gardenbus.common.api.identity.principals import SERVICE_ACCOUNT_PREFIX

ProjectRole = Literal["viewer", "member", "admin", "uam", "serviceaccountmanager"]

MANAGE_MEMBERS = "manage-members"

MEMBER_WORDS: Mapping[str, ProjectRole] = {
    "viewer": "viewer",
    "admin": "member",
    "owner": "admin",
    "uam": "uam",
    "serviceaccountmanager": "serviceaccountmanager",
}
"""Roles by the word for them in `spec.members`."""

GROUP_PREFIXES: Mapping[ProjectRole, str] = {
    "viewer": "gardener.cloud:system:project-viewer:",
    "member": "gardener.cloud:system:project-member:",
    "admin": "gardener.cloud:system:project:",
    "uam": "gardener.cloud:system:project-uam:",
    "serviceaccountmanager": "gardener.cloud:system:project-serviceaccountmanager:",
}


class Rule(NamedTuple):
    """Verbs on kinds; nothing else is allowed."""

    verbs: frozenset[str]
    kinds: frozenset[str]


class ProjectRules(NamedTuple):
    """Rules of a role: in the namespace of the Project, on the Project itself, and the custom verbs on it."""

    in_namespace: tuple[Rule, ...]
    on_project: frozenset[str]
    custom_verbs: frozenset[str] = frozenset()


_VIEWED = frozenset({
    "event", "configmap", "resourcequota", "serviceaccount", "shoot", "secretbinding", "quota", "bastion",
    "plant", "namespacedcloudprofile", "credentialsbinding", "openidconnectpreset", "role", "rolebinding",
})  # fmt: skip
_MANAGED = frozenset({
    "shoot", "secret", "configmap", "secretbinding", "credentialsbinding", "quota", "workloadidentity", "bastion",
    "plant", "namespacedcloudprofile", "openidconnectpreset", "role", "rolebinding",
})  # fmt: skip
_VIEWER = (Rule(READS, _VIEWED),)
_MEMBER = (
    Rule(READS, _VIEWED | _MANAGED),
    Rule(WRITES, _MANAGED),
    Rule(frozenset({"create"}), frozenset({"event"})),
    Rule(frozenset({"retry"}), frozenset({"shoot"})),
)
_SERVICE_ACCOUNTS = (Rule(READS | WRITES, frozenset({"serviceaccount"})),)
_CHANGES = frozenset({"apply", "update", "patch"})
_GET = frozenset({"get"})

RULES: Mapping[ProjectRole, ProjectRules] = {
    "viewer": ProjectRules(_VIEWER, _GET),
    "member": ProjectRules(_MEMBER, _GET | _CHANGES | {"delete"}),
    "uam": ProjectRules((), _GET | _CHANGES, frozenset({MANAGE_MEMBERS})),
    "serviceaccountmanager": ProjectRules(_SERVICE_ACCOUNTS, _GET),
    "admin": ProjectRules((*_MEMBER, *_SERVICE_ACCOUNTS), _GET | _CHANGES | {"delete"}, frozenset({MANAGE_MEMBERS})),
}
"""Everybody with a role also reads the Namespace."""


def _readable(role: ProjectRole) -> frozenset[str]:
    return frozenset(kind for rule in RULES[role].in_namespace if "get" in rule.verbs for kind in rule.kinds)


READABLE: Mapping[ProjectRole, frozenset[str]] = {role: _readable(role) for role in RULES}
"""Kinds in the namespace of which a role reads each object."""


def project_name(project: Document) -> str:
    """Name of a Project."""
    return str(section(project, "metadata").get("name") or "")


def roles_in(project: Document, user: str, groups: frozenset[str] = frozenset()) -> frozenset[ProjectRole]:
    """Roles of a user in a Project."""
    spec, name = section(project, "spec"), project_name(project)
    found: set[ProjectRole] = {role for role, prefix in GROUP_PREFIXES.items() if f"{prefix}{name}" in groups}
    for member in mappings(spec.get("members")):
        if is_meant(member, user, groups):
            found |= {MEMBER_WORDS[word] for word in _words_of(member) if word in MEMBER_WORDS}
    if is_meant(section(spec, "owner"), user, groups):
        found.add("admin")
    return frozenset(found)


def _words_of(member: Document) -> list[str]:
    further: object = member.get("roles")
    words = [member.get("role"), *(cast("list[object]", further) if isinstance(further, list) else ())]
    return [word for word in words if isinstance(word, str)]


def is_meant(subject: Document, user: str, groups: frozenset[str] = frozenset()) -> bool:
    """Match a user with a subject as Kubernetes has it: `kind` (User, Group, ServiceAccount), `name`, `namespace`."""
    name: object = subject.get("name")
    if not isinstance(name, str) or not name:
        return False
    match subject.get("kind"):
        case "User":
            return name == user
        case "Group":
            return name in groups
        case "ServiceAccount":
            return user == f"{SERVICE_ACCOUNT_PREFIX}{subject.get('namespace') or ''}:{name}"
        case _:
            return False


def is_allowed(action: Action, role: ProjectRole) -> bool:
    """True when a role in the Project of the action's namespace, or in the Project itself, allows it."""
    rules = RULES[role]
    match action.kind:
        case "project":
            return bool(action.name) and action.verb in rules.on_project
        case "namespace":
            return bool(action.name) and action.verb == "get"
        case _:
            return any(action.verb in rule.verbs and action.kind in rule.kinds for rule in rules.in_namespace)


def allowing_roles(action: Action) -> tuple[ProjectRole, ...]:
    """Roles in the Project that would allow it."""
    return tuple(role for role in RULES if is_allowed(action, role))
