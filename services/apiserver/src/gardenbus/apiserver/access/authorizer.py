"""Authorizes requests: reads the facts of a decision, decides, and keeps the audit log.

A requester of whom nothing has to be decided costs no read.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from gardenbus.apiserver.access.audit_log import AuditLog
from gardenbus.apiserver.domain.authorization.actions import (
    TRUSTED_INSIDERS,
    UNLIMITED,
    Action,
    MissingVerb,
    Permit,
    Rejection,
    Requester,
)
from gardenbus.apiserver.domain.authorization.auditing import is_privileged
from gardenbus.apiserver.domain.authorization.custom_verbs import check_change, check_verbs
from gardenbus.apiserver.domain.authorization.decision import (
    SERVICES,
    AuthorizationFacts,
    authorize,
    is_about_request,
)
from gardenbus.apiserver.domain.authorization.seed_graph import references_of
from gardenbus.apiserver.domain.authorization.seed_writes import change_problem
from gardenbus.apiserver.domain.related_objects import ObjectQuery, ProjectQuery, RelatedQuery
from gardenbus.apiserver.domain.request_subjects import RequestSubject
from gardenbus.apiserver.domain.senders import stated_groups
from gardenbus.apiserver.registry.read_cache import ReadCache
from gardenbus.apiserver.registry.seed_graph_reader import is_reachable
from gardenbus.apiserver.registry.writer import ChangeChecks
from gardenbus.common.api.budgets import LIMITS, STORED_LIMITS
from gardenbus.common.api.document import Document
from gardenbus.common.api.identity.principals import OPERATOR, principal_of
from gardenbus.common.api.identity.roles import LANDSCAPE_ROLES
from gardenbus.common.api.keys import DEFAULT_NAMESPACE, ObjectKey
from gardenbus.common.api.restored_requests import REQUEST_INFO
from gardenbus.common.controller.budget_settings import BudgetWithin, default_budget_within
from gardenbus.common.errors import Forbidden
from gardenbus.common.ports.store import DemandLimits, Store, WritePrecondition

BINDINGS_OF_CREDENTIALS = ("secretbinding", "credentialsbinding")
"""Kinds that may refer to another namespace: who writes one must be able to read what it refers to."""


class NotPermitted(Forbidden):
    """The requester may not do this, whatever the object is like."""


_DECIDED_BY_NAME = frozenset({"project", "namespace"})
"""Kinds of which each object has a Project of its own to decide."""

DECIDED_TOGETHER = 500
"""Documents of a message that are decided about before other tasks run."""


@dataclass(eq=False, slots=True)
class AccessGrant:
    """An action that is allowed, for the writer and the audit log."""

    requester: Requester
    action: Action
    permit: Permit
    audit: AuditLog | None
    is_tentative: bool = field(default=False, kw_only=True)
    preconditions: Sequence[WritePrecondition] = field(default=(), kw_only=True)

    @property
    def is_operators(self) -> bool:
        """True when the requester may do everything."""
        return self.permit.verbs is None

    @property
    def checks(self) -> ChangeChecks:
        """The checks of its change."""
        return ChangeChecks(self.check_change, self.check_verbs, self.preconditions)

    def check_change(self, old: Document | None, new: Document) -> None:
        """Raise MissingVerb for a bind, a reference or a change of a gardenlet's that the requester may not make."""
        self._reject(check_change(old, new, self.requester, self.permit) or self._gardenlets_rejection(old, new))

    def _gardenlets_rejection(self, old: Document | None, new: Document) -> Rejection | None:
        principal = principal_of(self.requester.user)
        if self.is_operators or principal.role != "gardenlet":
            return None
        problem = change_problem(old, new, principal.name)
        detail = f'user "{self.requester.user}" cannot {self.action}: {problem}'
        return Rejection("seed-restriction", detail) if problem else None

    def check_verbs(self, old: Document | None, new: Document) -> None:
        """Raise MissingVerb for a change within the object that takes a verb which the requester does not have."""
        self._reject(check_verbs(old, new, self.requester, self.permit))

    def _reject(self, rejection: Rejection | None) -> None:
        if rejection is None:
            return
        if self.audit is not None and not self.is_tentative:
            self.audit.forbidden(self.requester, self.action, rejection)
        raise MissingVerb(rejection.detail)

    def written(self, outcome: str, *, is_dry_run: bool = False) -> None:
        """Log the write, if it is a privileged one."""
        if self.audit is not None and not is_dry_run and is_privileged(self.action, is_operator=self.is_operators):
            self.audit.written(self.requester, self.action, outcome)


class Authorizer:
    """Authorizes the requests of one landscape; without enforcement everybody may do everything."""

    def __init__(
        self, store: Store, audit: AuditLog, *, is_enforced: bool, budget_within: BudgetWithin = default_budget_within
    ) -> None:
        self._store = store
        self._budget_within = budget_within
        self._audit = audit if is_enforced else None

    @property
    def is_enforced(self) -> bool:
        """False when everybody may do everything."""
        return self._audit is not None

    def requester(self, sender: RequestSubject, headers: Mapping[str, str], request_id: str) -> Requester:
        """The requester of a message whose sender was checked.

        An insider is whom a subject names that nobody outside can publish on. Where the server says that the message
        crossed the accounts nobody is; that it does not say so proves nothing, for it says so of no stored message.
        Where identities are on, the server lets only those who act for the operator send requests that name nobody.
        Groups are those that an insider states of whom it speaks for: outside nobody has any but by a name.
        """
        is_insider = sender.is_insider and REQUEST_INFO not in headers
        is_operators = self.is_enforced and is_insider and sender.origin == "nobody"
        groups = stated_groups(headers) if is_insider and sender.origin == "insider" else frozenset[str]()
        user = OPERATOR if is_operators else sender.user
        return Requester(user, is_insider=is_insider, groups=groups, request_id=request_id)

    @staticmethod
    def comes_from_services(sender: RequestSubject, headers: Mapping[str, str]) -> bool:
        """True for messages of services in their own names, and of the operator: not of those who they speak for."""
        is_own = sender.origin == "nobody" or sender.user in SERVICES or sender.user in TRUSTED_INSIDERS
        return is_own and sender.is_insider and REQUEST_INFO not in headers

    def decides_on(self, requester: Requester) -> bool:
        """True when there is something to decide about the requests of this one."""
        return self._audit is not None and not requester.is_trusted

    async def decide(self, requester: Requester, action: Action, reads: ReadCache) -> Permit | Rejection:
        """Decide on an action, and log nothing. Raises Unavailable."""
        if not self.decides_on(requester):
            return UNLIMITED
        return authorize(action, requester, await self.facts(requester, action, reads))

    async def permit(
        self, requester: Requester, action: Action, reads: ReadCache, *, is_tentative: bool = False
    ) -> Permit:
        """Raise Forbidden unless an action is allowed; a tentative one leaves nothing in the audit log."""
        decided = await self.decide(requester, action, reads)
        if isinstance(decided, Permit):
            return decided
        if self._audit is not None and not is_tentative:
            self._audit.forbidden(requester, action, decided)
        raise NotPermitted(decided.detail)

    async def permit_event(self, requester: Requester, about: ObjectKey, reads: ReadCache) -> None:
        """Raise Forbidden unless an Event may be recorded about an object; a gardenlet's is about what it reads."""
        await self.permit(requester, Action("create", "event", about.namespace or DEFAULT_NAMESPACE), reads)
        if principal_of(requester.user).role == "gardenlet":
            await self.permit(requester, Action.on("get", about), reads)

    async def grant(
        self, requester: Requester, action: Action, reads: ReadCache, *, is_tentative: bool = False
    ) -> AccessGrant:
        """The same, for an action that writes."""
        permit = await self.permit(requester, action, reads, is_tentative=is_tentative)
        return AccessGrant(requester, action, permit, self._audit, is_tentative=is_tentative)

    async def permit_message(
        self, requester: Requester, verb: str, keys: Iterable[ObjectKey], reads: ReadCache
    ) -> "MessagePermits":
        """Decide once about all writes of a message that have the same facts. Raises Forbidden for the first rejected.

        So nothing is written of a message in which something may not be, and what is not allowed costs one decision.
        """
        permits = MessagePermits(requester)
        if self.decides_on(requester):
            for number, key in enumerate(keys, 1):
                action = Action.on(verb, key)
                if permits.of(action) is None:
                    permits.add(action, await self.permit(requester, action, reads))
                if number % DECIDED_TOGETHER == 0:
                    await asyncio.sleep(0)
        return permits

    async def grant_write(  # noqa: PLR0913
        self,
        requester: Requester,
        verb: str,
        key: ObjectKey,
        reads: ReadCache,
        given: Document | None = None,
        *,
        is_tentative: bool = False,
        permits: "MessagePermits | None" = None,
    ) -> AccessGrant:
        """Raise Forbidden unless an object may be written; `apply` creates or updates it.

        `given`: the manifest or patch, in which references out of the namespace need the right to read there.
        `permits`: what was decided about its message.
        """
        action = Action.on(verb, key)
        permits = permits if self.decides_on(requester) else None
        permit = permits.of(action) if permits is not None else None
        if permit is None:
            permit = await self.permit(requester, action, reads, is_tentative=is_tentative)
            if permits is not None:
                permits.add(action, permit)
        granted = AccessGrant(
            requester,
            action,
            permit,
            self._audit,
            is_tentative=is_tentative,
            preconditions=self._within_budget(requester, key.namespace, permit),
        )
        if not self.decides_on(requester):
            return granted
        further: list[Action] = []
        if (verb, key.kind) == ("apply", "project") and await reads.get(key) is None:
            further.append(Action.on("create", key))
        if given is not None and key.kind in BINDINGS_OF_CREDENTIALS:
            referred = references_of(key, given)
            further += [Action.on("get", other) for other in referred if other.namespace != key.namespace]
        for action in further:
            await self.permit(requester, action, reads, is_tentative=is_tentative)
        return granted

    def _within_budget(self, requester: Requester, namespace: str, permit: Permit) -> Sequence[WritePrecondition]:
        """The condition that a namespace holds no more than its budget; none for operators and services."""
        if permit.verbs is None or not namespace:
            return ()
        budget = self._budget_within(requester.user, namespace)
        most = {limit: getattr(budget, LIMITS[limit]) for limit in STORED_LIMITS}
        return (WritePrecondition("stored", namespace, "", limits=DemandLimits(most=most)),)

    def queries(self, requester: Requester, action: Action) -> Sequence[RelatedQuery]:
        """Queries whose results are the facts of a decision about a person, to be read ahead."""
        if not self.decides_on(requester) or not _is_person(requester):
            return ()
        return _persons_queries(action)

    async def facts(self, requester: Requester, action: Action, reads: ReadCache) -> AuthorizationFacts:
        """The facts of a decision. Raises Unavailable."""
        principal = principal_of(requester.user)
        if is_about_request(action, principal):
            stored = await reads.get(action.key) if action.name else None
            return AuthorizationFacts(stored=stored.document() if stored else None)
        match principal.role:
            case "gardenlet":
                return await self._gardenlets_facts(principal.name, action, reads)
            case "scheduler":
                is_needed = action.kind in ("shoot", "configmap") and bool(action.name)
                stored = await reads.get(action.key) if is_needed else None
                return AuthorizationFacts(stored=stored.document() if stored else None)
            case "member-agent" | "extension" | "plugin" | "bootstrap":
                return AuthorizationFacts()
            case "service" | "operator" | "user":
                return await _persons_facts(action, reads)

    async def _gardenlets_facts(self, seed: str, action: Action, reads: ReadCache) -> AuthorizationFacts:
        if not action.name or not await is_reachable(self._store, seed, action.key):
            return AuthorizationFacts()
        stored = await reads.get(action.key) if action.kind == "secret" else None
        return AuthorizationFacts(stored=stored.document() if stored else None, is_reachable=True)


class MessagePermits:
    """Permits of the writes of a message: one decision about a person for all objects of a namespace."""

    def __init__(self, requester: Requester) -> None:
        self._requester = requester
        self._permits: dict[Action, Permit] = {}

    def of(self, action: Action) -> Permit | None:
        """The permit of an action; None when nothing was decided about it."""
        return self._permits.get(self._scope(action))

    def add(self, action: Action, permit: Permit) -> None:
        """Note a permit, also for others on which its decision does not depend."""
        self._permits[self._scope(action)] = permit

    def _scope(self, action: Action) -> Action:
        is_by_name = action.kind in _DECIDED_BY_NAME or not _is_person(self._requester)
        return action if is_by_name else action._replace(name="")


def _is_person(requester: Requester) -> bool:
    return principal_of(requester.user).role in ("user", "operator")


def _persons_queries(action: Action) -> Sequence[RelatedQuery]:
    """The landscape's roles and the Project, which come in one call."""
    if action.kind == "project" and action.name:
        return (ObjectQuery(LANDSCAPE_ROLES), ObjectQuery(action.key))
    if action.project_namespace:
        return (ObjectQuery(LANDSCAPE_ROLES), ProjectQuery(action.project_namespace))
    return (ObjectQuery(LANDSCAPE_ROLES),)


async def _persons_facts(action: Action, reads: ReadCache) -> AuthorizationFacts:
    found = await reads.related(_persons_queries(action))
    namespace = action.project_namespace
    project = found.objects.get(action.key) if action.kind == "project" else found.projects.get(namespace)
    return AuthorizationFacts(found.objects.get(LANDSCAPE_ROLES), project)
