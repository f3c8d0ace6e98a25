"""Rights of a requester to read, kind by kind and namespace by namespace: the decision on a list of each."""

from collections.abc import Iterable

from gardenbus.apiserver.domain.authorization.actions import Action, Permit, Requester
from gardenbus.apiserver.domain.authorization.decision import AuthorizationFacts, authorize, role_of
from gardenbus.apiserver.domain.authorization.project_roles import project_name
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.identity.principals import OPERATOR
from gardenbus.common.api.identity.readable import Readable
from gardenbus.common.api.kinds import CONFIDENTIAL, KINDS

_LISTED = sorted(frozenset(KINDS) - CONFIDENTIAL)


def readable(requester: Requester, roles: Document | None, projects: Iterable[Document]) -> Readable:
    """Rights by the roles in the landscape, and in these Projects; nothing that holds credentials."""
    facts = AuthorizationFacts(roles)
    if requester.is_trusted:
        return Readable(role=OPERATOR, kinds=frozenset(_LISTED))
    kinds = frozenset(kind for kind in _LISTED if _may(Action("list", kind, _everywhere(kind)), requester, facts))
    namespaces: dict[str, frozenset[str]] = {}
    names: set[str] = set()
    for project in projects:
        own, name = facts._replace(project=project), project_name(project)
        if _may(Action("get", "project", "", name), requester, own):
            names.add(name)
        namespace = str(section(project, "spec").get("namespace") or "")
        if not namespace or not _may(Action("get", "namespace", "", namespace), requester, own):
            continue
        namespaces[namespace] = frozenset(
            kind
            for kind in _LISTED
            if KINDS[kind].namespaced is not False and _may(Action("list", kind, namespace), requester, own)
        )
    role = role_of(requester, facts) or "user"
    return Readable(role=role, kinds=kinds, namespaces=namespaces, projects=frozenset(names))


def _everywhere(kind: str) -> str | None:
    return "" if KINDS[kind].namespaced is False else None


def _may(action: Action, requester: Requester, facts: AuthorizationFacts) -> bool:
    return isinstance(authorize(action, requester, facts), Permit)
