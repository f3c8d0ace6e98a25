"""Budgets as the ConfigMap `garden/budgets` sets them, and the Projects whose members they may be for.

An informer feeds it, so that settings take effect without a restart. Settings that cannot be read (nobody writes such
through admission) change nothing. A service that is fed no Projects has none count.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping

import structlog

from gardenbus.common.api.budgets import BUDGETS, DEFAULT_BUDGET, Budget, Budgets, budgets_of
from gardenbus.common.api.document import Document, StoredObject, section
from gardenbus.common.api.document_parts import mappings
from gardenbus.common.api.identity.names import requester
from gardenbus.common.api.identity.principals import SERVICE_ACCOUNT_PREFIX, Principal, groups_of, groups_of_user
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import BadRequest, InvalidResource

_log = structlog.stdlib.get_logger()

BudgetOf = Callable[[str], Budget]
"""The budget of a user."""


BudgetWithin = Callable[[str, str], Budget]
"""The budget of a user for what is stored in a namespace."""


def default_budget(_user: str) -> Budget:
    """The budget of everybody where nothing is set."""
    return DEFAULT_BUDGET


def default_budget_within(_user: str, _namespace: str) -> Budget:
    """Likewise."""
    return DEFAULT_BUDGET


class BudgetSettings:
    """The budgets of one landscape. `on_change` is an informer's callback for `KINDS`."""

    KINDS = (BUDGETS.kind, "project")
    NAMESPACES: Mapping[str, str] = {BUDGETS.kind: BUDGETS.namespace}

    def __init__(self) -> None:
        self._budgets = Budgets()
        self._subjects: dict[str, frozenset[str]] = {}
        self._projects: defaultdict[str, set[str]] = defaultdict(set)
        self._namespaces: dict[str, str] = {}

    def of(self, user: str, projects: Collection[str] = ()) -> Budget:
        """The budget of a user, who is a member of these Projects and of those that were noted."""
        try:
            principal = requester(user)
        except BadRequest:
            return self._budgets.of(user, (), projects)
        groups = _groups_of(principal)
        noted = {name for subject in (user, *map(_group, groups)) for name in self._projects.get(subject, ())}
        return self._budgets.of(user, groups, {*projects, *noted}, role=principal.role)

    def within(self, user: str, namespace: str) -> Budget:
        """The budget of a user for what is stored in a namespace; that of its Project for nobody."""
        project = self.project_of(namespace)
        projects = (project,) if project else ()
        try:
            principal = requester(user)
        except BadRequest:
            return self._budgets.of("", (), projects)
        return self._budgets.of(user, _groups_of(principal), projects)

    def project_of(self, namespace: str) -> str | None:
        """The Project of a namespace, as far as it was noted."""
        return self._namespaces.get(namespace)

    def on_change(self, key: ObjectKey, old: StoredObject | None, new: StoredObject | None) -> None:
        """Note settings, and members and namespaces of Projects."""
        if key.kind == "project":
            for project in filter(None, (old, new)):
                self._note_namespace(section(project.document(), "spec"), key.name if project is new else None)
            self._note_members(key.name, frozenset(_members(new.document())) if new is not None else frozenset())
        elif key == BUDGETS:
            self.note(new.document() if new is not None else None)

    def note(self, settings: Document | None) -> None:
        """Note the ConfigMap, or that there is none."""
        try:
            self._budgets = budgets_of(settings)
        except InvalidResource as error:
            _log.warning("budgets.unreadable", object=str(BUDGETS), reason=error.message)

    def _note_namespace(self, spec: Document, project: str | None) -> None:
        namespace: object = spec.get("namespace")
        if isinstance(namespace, str) and project is None:
            self._namespaces.pop(namespace, None)
        elif isinstance(namespace, str) and project is not None:
            self._namespaces[namespace] = project

    def _note_members(self, project: str, subjects: frozenset[str]) -> None:
        before = self._subjects.pop(project, frozenset())
        for subject in before - subjects:
            self._projects[subject].discard(project)
            if not self._projects[subject]:
                del self._projects[subject]
        for subject in subjects - before:
            self._projects[subject].add(project)
        if subjects:
            self._subjects[project] = subjects


def _groups_of(principal: Principal) -> frozenset[str]:
    return groups_of_user(principal.user).union(groups_of(principal))


def _members(project: Document) -> Iterator[str]:
    """The users of a Project, and its groups, each as one text."""
    spec = section(project, "spec")
    for subject in (*mappings(spec.get("members")), section(spec, "owner")):
        name: object = subject.get("name")
        if not isinstance(name, str):
            continue
        match subject.get("kind"):
            case "User":
                yield name
            case "Group":
                yield _group(name)
            case "ServiceAccount":
                yield f"{SERVICE_ACCOUNT_PREFIX}{subject.get('namespace') or ''}:{name}"
            case _:
                pass


def _group(name: str) -> str:
    """A group beside users: no user has a line break in its name."""
    return f"group\n{name}"
