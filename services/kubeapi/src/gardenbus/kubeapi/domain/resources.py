"""Resources of the API: the registered kinds by group, version and plural, with their verbs and subresources."""

from collections.abc import Mapping
from typing import NamedTuple

from gardenbus.common.api.kinds import CORE, KINDS, SEED_MANAGEMENT, KindSpec

READ_VERBS = ("get", "list", "watch")
WRITE_VERBS = ("create", "update", "patch", "delete", "deletecollection")

AUTHENTICATION = "authentication.k8s.io"
AUTHORIZATION = "authorization.k8s.io"


class Subresource(NamedTuple):
    """Part of an object under a path of its own; `group`, `version` and `kind` are of its body."""

    name: str
    verbs: tuple[str, ...]
    group: str = ""
    version: str = ""
    kind: str = ""


class ApiResource(NamedTuple):
    """A resource; the objects of a review are not stored: they come back with a status."""

    group: str
    version: str
    kind: str
    plural: str
    singular: str
    short_names: tuple[str, ...]
    namespaced: bool
    verbs: tuple[str, ...]
    subresources: tuple[Subresource, ...] = ()

    @property
    def api_version(self) -> str:
        """`<group>/<version>`, or the version alone in the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def qualified(self) -> str:
        """`shoots.core.gardener.cloud`, as Status messages name it."""
        return f"{self.plural}.{self.group}" if self.group else self.plural


_VERBS: Mapping[str, tuple[str, ...]] = {
    "event": (*READ_VERBS, "create", "update", "patch"),
    "namespace": (*READ_VERBS, "create", "update", "patch", "delete"),
}
"""Kinds without some verbs: Events go by themselves, Namespaces go one by one."""

_STATUS = Subresource("status", ("get", "update", "patch"))
_SUBRESOURCES: Mapping[str, tuple[Subresource, ...]] = {
    "shoot": (
        Subresource("binding", ("update",)),
        Subresource(
            "adminkubeconfig", ("create",), "authentication.gardener.cloud", "v1alpha1", "AdminKubeconfigRequest"
        ),
    ),
    "managedseedset": (Subresource("scale", ("get", "update", "patch"), "autoscaling", "v1", "Scale"),),
    "certificatesigningrequest": (Subresource("approval", ("get", "update")),),
}


def _resource(spec: KindSpec) -> ApiResource:
    own = (_STATUS,) if spec.has_spec else ()
    return ApiResource(
        spec.group,
        spec.version,
        spec.kind,
        spec.plural,
        spec.singular,
        spec.short_names,
        spec.namespaced is not False,
        _VERBS.get(spec.singular, (*READ_VERBS, *WRITE_VERBS)),
        (*own, *_SUBRESOURCES.get(spec.singular, ())),
    )


def _review(group: str, kind: str) -> ApiResource:
    return ApiResource(group, "v1", kind, f"{kind.lower()}s", kind.lower(), (), namespaced=False, verbs=("create",))


REVIEWS: Mapping[str, ApiResource] = {
    each.plural: each
    for each in (
        _review(AUTHENTICATION, "SelfSubjectReview"),
        _review(AUTHENTICATION, "TokenReview"),
        _review(AUTHORIZATION, "SelfSubjectAccessReview"),
        _review(AUTHORIZATION, "SelfSubjectRulesReview"),
        _review(AUTHORIZATION, "SubjectAccessReview"),
    )
}
"""Resources that report who somebody is, and what they may do."""

EVENTS = ApiResource(
    "events.k8s.io", "v1", "Event", "events", "event", (), namespaced=True, verbs=("create", "update", "patch")
)
"""Events in the group in which newer clients record them; they are read in the core group."""

RESOURCES: tuple[ApiResource, ...] = (*map(_resource, KINDS.values()), *REVIEWS.values(), EVENTS)

_BY_PATH: Mapping[tuple[str, str, str], ApiResource] = {
    (each.group, each.version, each.plural): each for each in RESOURCES
}
_BY_SINGULAR: Mapping[str, ApiResource] = {each.singular: each for each in reversed(RESOURCES)}

_FIRST = ("", CORE, SEED_MANAGEMENT)


def resource_at(group: str, version: str, plural: str) -> ApiResource | None:
    """The resource of a path; None where there is none."""
    return _BY_PATH.get((group, version, plural))


def resource_named(singular: str) -> ApiResource:
    """The resource of a registered kind."""
    return _BY_SINGULAR[singular]


def groups() -> Mapping[str, Mapping[str, tuple[ApiResource, ...]]]:
    """Resources by group and version, in the order in which clients look for a word: Kubernetes' first."""
    found: dict[str, dict[str, tuple[ApiResource, ...]]] = {}
    for each in sorted(RESOURCES, key=lambda each: (_rank(each.group), each.group, each.plural)):
        versions = found.setdefault(each.group, {})
        versions[each.version] = (*versions.get(each.version, ()), each)
    return {group: dict(sorted(versions.items(), key=_by_preference)) for group, versions in found.items()}


def _rank(group: str) -> int:
    return _FIRST.index(group) if group in _FIRST else len(_FIRST)


def _by_preference(entry: tuple[str, object]) -> tuple[bool, str]:
    """Stable versions first."""
    return ("alpha" in entry[0] or "beta" in entry[0], entry[0])
