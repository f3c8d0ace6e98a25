"""Decides whether a requester may do something. Nothing is allowed but what a rule here allows.

| who | may |
|---|---|
| operator, and the services' account | everything; services of a row of their own no more than that |
| everybody | request a certificate |
| bootstrapper, gardenlet, member agent | read the requests that they sent, and those of their own certificates |
| everybody but bootstrappers and extensions | read CloudProfiles, ExposureClasses, Seeds; request `whoami`, … |
| viewer of the landscape | read everything but what holds secrets; what waits, is unknown, or was lost |
| people with a role in a Project | what `project_roles` says, in its namespace |
| gardenlet | read what its Seed's graph leads to (`seed_graph`), and ControllerRegistrations; request tokens |
| | list the shoots, Bastions and ControllerInstallations of its seed, and the Secrets of its seed's namespace |
| | write of these what `seed_writes` says |
| member agent | read its MemberCluster and its Works |
| scheduler of one's own | read what scheduling needs; bind and retry the shoots of its name |
"""

from collections.abc import Mapping
from typing import NamedTuple

from gardenbus.apiserver.domain.authorization.actions import (
    BIND,
    READS,
    UNLIMITED,
    WRITES,
    Action,
    Permit,
    Rejection,
    Requester,
)
from gardenbus.apiserver.domain.authorization.project_roles import (
    READABLE,
    RULES,
    ProjectRole,
    Rule,
    allowing_roles,
    is_allowed,
    project_name,
    roles_in,
)
from gardenbus.apiserver.domain.authorization.seed_writes import lets_somebody_in, may_write
from gardenbus.common.api.document import SEED_LABEL_PREFIX, Document, section
from gardenbus.common.api.fleet.member_clusters import CLUSTER_NAMESPACE_PREFIX
from gardenbus.common.api.garden.shoots import DEFAULT_SCHEDULER
from gardenbus.common.api.identity.issued_credentials import SEEDS_ANNOTATION
from gardenbus.common.api.identity.principals import Principal, Role, groups_of_user, principal_of
from gardenbus.common.api.identity.revocations import REVOCATIONS
from gardenbus.common.api.identity.roles import LANDSCAPE_ROLES, LandscapeRole, landscape_role
from gardenbus.common.api.identity.signing_requests import SINGULAR, USER
from gardenbus.common.api.index_keys import REGION_CONFIG_LABEL
from gardenbus.common.api.keys import CLUSTER_IDENTITY, GARDEN_NAMESPACE, GARDENER_INFO, KUBE_ROOT_CA, seed_namespace
from gardenbus.common.api.kinds import CONFIDENTIAL, KINDS
from gardenbus.common.api.verbs import sent_by

GLOBAL_KINDS = frozenset({"cloudprofile", "exposureclass", "seed"})
"""Read by everybody. Source: Gardener's ClusterRole `gardener.cloud:system:read-global-resources`."""

PUBLIC_CONFIG_MAPS = frozenset({CLUSTER_IDENTITY, GARDENER_INFO, KUBE_ROOT_CA})
"""So are these. Source: its Roles `gardener.cloud:system:read-{cluster-identity-configmap,gardener-system-public}`."""

LANDSCAPE_READS = sent_by("viewer")
CERTIFICATE_REQUESTS = sent_by("bootstrap")
OWN_REVIEWS = frozenset({"whoami", "can-i"})
"""Requests that the Kubernetes API sends for those who send none of them themselves."""
EVERYBODYS_REQUESTS = sent_by("everybody")

SCHEDULERS_KINDS = frozenset({
    "shoot", "seed", "cloudprofile", "namespacedcloudprofile", "project", "exposureclass", "managedseed", "configmap",
})  # fmt: skip
"""Kinds that decisions are made of."""

CLOSED_OBJECTS = frozenset({LANDSCAPE_ROLES, REVOCATIONS})
"""Objects that say who may do what: nothing leads to them from a Seed, and no scheduler decides by them."""

_WITHOUT_REQUESTS: Mapping[Role, str] = {
    "extension": "an extension responds to its seed's gardenlet, and sends no requests",
    "plugin": "a plug-in responds to schedulers, and sends no requests",
}

_LISTED_BY_SEED = {
    "shoot": "spec.seedName",
    "bastion": "spec.seedName",
    "controllerinstallation": "spec.seedRef.name",
}
"""Kinds of which a gardenlet lists the objects of its seed, by which field."""

_LISTED_BY_LABEL = frozenset({"shoot", "managedseed"})
"""Kinds whose objects of a seed have its label."""

_LISTED_WHOLE = frozenset({"controllerregistration", "backupbucket", "backupentry"})
"""Kinds that gardenlets list whole. Source: Gardener's seed authorizer."""

_LISTED_IN_OWN_NAMESPACE = frozenset({"secret", "serviceaccount"})

_DASHBOARDS_KINDS = frozenset(KINDS) - CONFIDENTIAL - {"configmap", "project", "namespace"}
_SEED_SETS = frozenset({"managedseedset"})

SERVICES: Mapping[str, tuple[Rule, ...]] = {
    "managedseedset": (
        Rule(WRITES, frozenset({"shoot", "managedseed", "controllerrevision"})),
        Rule(frozenset({"patch"}), frozenset({"seed"})),
        Rule(frozenset({BIND}), frozenset({"shoot"})),
    ),
    "autoscaler": (Rule(frozenset({"scale"}), _SEED_SETS),),
    "controllermanager": (Rule(frozenset({"update", "patch", "delete"}), frozenset({"shoot", "bastion"})),),
    "dashboard": (
        Rule(frozenset({"retry", "patch", "update", "delete"}), _DASHBOARDS_KINDS),
        Rule(frozenset({"create"}), frozenset({"event"})),
        Rule(frozenset({BIND}), frozenset({"shoot"})),
    ),
}
"""Services that send requests in their own name, and what they send besides reading."""


class AuthorizationFacts(NamedTuple):
    """Facts of a decision besides the request; None or False where one is not there, or was not needed."""

    roles: Document | None = None
    """The ConfigMap with the roles in the landscape."""
    project: Document | None = None
    """The Project of the action's namespace, or the Project that it is about."""
    stored: Document | None = None
    """The object."""
    is_reachable: bool = False
    """The gardenlet's Seed leads to the object."""


def authorize(action: Action, requester: Requester, facts: AuthorizationFacts) -> Permit | Rejection:
    """Allow an action, with the custom verbs that the requester has, or reject it."""
    if requester.is_trusted:
        return UNLIMITED
    if requester.is_insider and requester.user in SERVICES:
        return _service(action, requester)
    principal = principal_of(requester.user)
    if principal.role not in ("bootstrap", "extension", "plugin") and _is_everybodys(action):
        return Permit()
    if is_about_request(action, principal):
        detail = "it reads the requests that it sent, and those of its own certificates, by name"
        is_own = action.verb in READS and _is_own_request(facts.stored, requester.user)
        return _allowed_if(is_own, "own-request", action, requester, detail)
    match principal.role:
        case "gardenlet":
            return _gardenlet(action, requester, principal, facts)
        case "member-agent":
            return _member_agent(action, requester, principal)
        case "scheduler":
            return _scheduler(action, requester, principal, facts)
        case "extension" | "plugin":
            return _rejection(principal.role, action, requester, _WITHOUT_REQUESTS[principal.role])
        case "bootstrap":
            return _allowed_if(
                action.verb in CERTIFICATE_REQUESTS | OWN_REVIEWS,
                "bootstrap",
                action,
                requester,
                "a token is for a certificate only",
            )
        case _:
            return _person(action, requester, facts)


def role_of(requester: Requester, facts: AuthorizationFacts) -> LandscapeRole | None:
    """The role of a person in the landscape."""
    return "operator" if requester.is_trusted else landscape_role(facts.roles, requester.user, requester.groups)


def is_about_request(action: Action, principal: Principal) -> bool:
    """True for an action on a signing request by whom tokens, or a landscape's authority, let in alone."""
    return action.kind == SINGULAR and principal.role in ("bootstrap", "gardenlet", "member-agent")


def _is_own_request(stored: Document | None, user: str) -> bool:
    if stored is None:
        return False
    holder = section(stored, "metadata", "annotations").get(USER)
    return user in (section(stored, "spec").get("username"), holder)


def _is_everybodys(action: Action) -> bool:
    if not action.kind:
        return action.verb in EVERYBODYS_REQUESTS or action.verb.startswith("position.")
    is_public = action.kind in GLOBAL_KINDS or (action.kind == "configmap" and action.key in PUBLIC_CONFIG_MAPS)
    return is_public and action.verb in ("get", "list", "watch")


def _service(action: Action, requester: Requester) -> Permit | Rejection:
    is_read = action.verb in READS | LANDSCAPE_READS | EVERYBODYS_REQUESTS
    if is_read or any(action.verb in rule.verbs and action.kind in rule.kinds for rule in SERVICES[requester.user]):
        return UNLIMITED
    return _rejection("service", action, requester, "it is no part of what this service does")


def _is_withheld(action: Action) -> bool:
    return action.kind in CONFIDENTIAL


def _gardenlet(
    action: Action, requester: Requester, principal: Principal, facts: AuthorizationFacts
) -> Permit | Rejection:
    if action.verb in ("announced", "token.create"):  # of its own Seed, and for the ManagedSeeds that it hosts
        return Permit()
    is_closed = action.key in CLOSED_OBJECTS or _is_closed(facts.stored, principal.name)
    if action.verb not in READS:
        if not is_closed and may_write(action, principal.name, is_reachable=facts.is_reachable):
            return Permit(readable=frozenset())
        detail = f"a gardenlet writes what is of its seed, or reports on garden.report.{principal.name}.>"
        return _rejection("seed-authorizer", action, requester, detail)
    if action.verb in ("list", "watch") and not action.name:
        selector = _LISTED_BY_SEED.get(action.kind)
        detail = f"nothing on seed {principal.name} leads to it"
        if selector is not None:
            detail = f"a gardenlet lists those of its seed, with the field selector {selector}={principal.name}"
        return _allowed_if(_is_listed(action, principal.name), "seed-authorizer", action, requester, detail)
    if action.kind == "controllerregistration" or (facts.is_reachable and not is_closed):
        return Permit()
    return _rejection("seed-authorizer", action, requester, f"nothing on seed {principal.name} leads to it")


def _is_listed(action: Action, seed: str) -> bool:
    """True for a list of what is of a seed."""
    if action.kind in _LISTED_WHOLE or (action.kind in _LISTED_BY_SEED and action.seed == seed):
        return True
    if action.kind in _LISTED_BY_LABEL and (f"{SEED_LABEL_PREFIX}{seed}", "true") in action.labels:
        return True
    return action.kind in _LISTED_IN_OWN_NAMESPACE and action.namespace == seed_namespace(seed)


def _is_closed(stored: Document | None, seed: str) -> bool:
    """True for a Secret with credentials of somebody, and for one of other seeds."""
    if stored is None or stored.get("kind") != "Secret":
        return False
    annotations = section(stored, "metadata", "annotations")
    seeds = str(annotations.get(SEEDS_ANNOTATION, seed)).split(",")
    return lets_somebody_in(stored) or seed not in {each.strip() for each in seeds}


def _member_agent(action: Action, requester: Requester, principal: Principal) -> Permit | Rejection:
    own = action.kind == "membercluster" and action.name == principal.name
    work = action.kind == "work" and action.namespace == f"{CLUSTER_NAMESPACE_PREFIX}{principal.name}"
    is_covered = action.verb in READS and (own or work)
    detail = f"an agent reads MemberCluster {principal.name} and the Works of it, and writes by reports"
    return _allowed_if(is_covered, "member-agent", action, requester, detail)


def _scheduler(
    action: Action, requester: Requester, principal: Principal, facts: AuthorizationFacts
) -> Permit | Rejection:
    name = principal.name
    if action.verb in (BIND, "retry") and action.kind == "shoot":
        stated = section(facts.stored or {}, "spec").get("schedulerName") or DEFAULT_SCHEDULER
        detail = f"it takes a shoot whose spec.schedulerName is {name}"
        return _allowed_if(facts.stored is not None and stated == name, "scheduler", action, requester, detail)
    if action.verb == "waiting":
        return _allowed_if(action.name == name, "scheduler", action, requester, f"request waiting.{name}")
    is_read = action.verb in READS and action.kind in SCHEDULERS_KINDS and action.verb != "explain"
    if action.kind == "configmap":
        is_read = is_read and action.namespace == GARDEN_NAMESPACE and _is_of_regions(action, facts)
    return _allowed_if(
        is_read, "scheduler", action, requester, "a scheduler reads what decisions are made of, and binds"
    )


def _is_of_regions(action: Action, facts: AuthorizationFacts) -> bool:
    """True for a ConfigMap with distances of regions, and for a list of such alone."""
    if action.name:
        name, value = REGION_CONFIG_LABEL
        return section(facts.stored or {}, "metadata", "labels").get(name) == value
    return REGION_CONFIG_LABEL in action.labels


def _person(action: Action, requester: Requester, facts: AuthorizationFacts) -> Permit | Rejection:
    match landscape_role(facts.roles, requester.user, requester.groups):
        case "operator":
            return UNLIMITED
        case "viewer" if _is_viewed(action):
            return Permit()
        case _:
            return _by_project(action, requester, facts)


def _is_viewed(action: Action) -> bool:
    if not action.kind:
        return action.verb in LANDSCAPE_READS
    return action.verb in READS and not _is_withheld(action)


def _by_project(action: Action, requester: Requester, facts: AuthorizationFacts) -> Permit | Rejection:
    project = facts.project
    if action.namespace == GARDEN_NAMESPACE or not action.kind:
        return _rejection("role", action, requester, _needed(action, None))
    groups = requester.groups | groups_of_user(requester.user)
    roles = roles_in(project, requester.user, groups) if project is not None else frozenset[ProjectRole]()
    if any(is_allowed(action, role) for role in roles):
        verbs = frozenset(verb for role in roles for verb in RULES[role].custom_verbs)
        return Permit(verbs, frozenset().union(*(READABLE[role] for role in roles)))
    return _rejection("role", action, requester, _needed(action, project if roles else None))


def _needed(action: Action, project: Document | None) -> str:
    """The roles that would allow a person this action; `project`: where the person has a role, and knows its name."""
    if not action.kind:
        allowing = "viewer or operator" if action.verb in LANDSCAPE_READS else "operator"
        return f"that takes the role {allowing} of the landscape"
    if action.namespace is None and allowing_roles(action):
        return "name the namespace of one of your projects with -n NAMESPACE, or have a role of the landscape"
    roles = allowing_roles(action) if project is not None else ()
    viewer = "viewer or " if _is_viewed(action) else ""
    landscape = f"the role {viewer}operator of the landscape"
    if roles:
        return f"that takes the role {' or '.join(roles)} in project {project_name(project or {})}, or {landscape}"
    return f"that takes {landscape}"


def _allowed_if(is_allowed: bool, rule: str, action: Action, requester: Requester, detail: str) -> Permit | Rejection:  # noqa: FBT001 - read as a sentence
    return Permit() if is_allowed else _rejection(rule, action, requester, detail)


def _rejection(rule: str, action: Action, requester: Requester, detail: str) -> Rejection:
    return Rejection(rule, f'user "{requester.user}" cannot {action}: {detail}')
