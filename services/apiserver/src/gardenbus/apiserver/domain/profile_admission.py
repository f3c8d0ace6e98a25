"""Admission of a Shoot against its cloud profile, and against the binding of its credentials.

Facts: the profile that the shoot names (a NamespacedCloudProfile with the merged profile in its status), its bindings,
and the time. A new shoot is checked whole; of a changed one what has changed: what is stored can always be reported on,
deleted, and changed elsewhere. A list that the profile leaves empty offers anything.

Source: Gardener's plugins ResourceReferenceManager (what is named exists) and ShootValidator (the profile offers it).
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from gardenbus.apiserver.domain.cloud_profiles import profile_key
from gardenbus.apiserver.domain.nearest_values import nearest_names, nearest_versions
from gardenbus.apiserver.domain.rejection_messages import NOT_THERE, RejectionMessage, unchanged
from gardenbus.apiserver.domain.related_objects import ObjectQuery, RelatedObjects, RelatedQuery
from gardenbus.apiserver.domain.validation.field_cursor import invalid
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import differ, mappings, namespace_of, only_text
from gardenbus.common.api.garden.architectures import (
    DEFAULT_ARCHITECTURE,
    architecture_of,
    architectures_of,
    architectures_of_image,
    architectures_of_type,
)
from gardenbus.common.api.garden.credentials_bindings import provider_types
from gardenbus.common.api.garden.expirable_versions import is_expired, numbers_of
from gardenbus.common.api.garden.pool_constraints import UNAVAILABLE, is_reserving, least_nodes_conflict, pool_conflicts
from gardenbus.common.api.garden.profile_parts import binding_keys, profile_spec_of
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.api.shown_values import shown
from gardenbus.common.errors import FieldProblem
from gardenbus.common.ports.store import WritePrecondition

NOT_OFFERED = RejectionMessage("the cloud profile does not offer {value}; {alternatives}")
NOT_COMPLETED = RejectionMessage(
    "no version that begins with {value} can be filled in from the cloud profile: state one in full; {alternatives}"
)
NOT_ALLOWED = RejectionMessage("the cloud profile does not allow it here: {reason}")
OTHER_TYPE = RejectionMessage("is {type}, and the cloud profile is for {profile}")
OTHER_BINDING = RejectionMessage("{binding} is for {types}, and the shoot is {type}")

_BINDING_FIELDS = {"secretbinding": "spec.secretBindingName", "credentialsbinding": "spec.credentialsBindingName"}

_CHECKED_FIELDS = (
    "cloudProfile",
    "cloudProfileName",
    "kubernetes",
    "provider",
    "secretBindingName",
    "credentialsBindingName",
)
"""Fields of a spec whose changes are checked; the region never changes."""

Nearest = Callable[[str, Collection[str]], Sequence[str]]


class _Choice(NamedTuple):
    """A value of a shoot that its profile has to offer: where it stands, and what else could stand there."""

    path: str
    value: str
    offered: Collection[str]
    nearest: Nearest = nearest_names

    @property
    def problem(self) -> FieldProblem | None:
        """Problem of the value; None when it is offered, or nothing is said about what is."""
        if not self.value or not self.offered or self.value in self.offered:
            return None
        choices = self.nearest(self.value, self.offered)
        more = len(self.offered) - len(choices)
        others = f" (and {more} more)" if more else ""
        described = "the nearest are" if len(choices) > 1 else "there is"
        alternatives = f"{described} {', '.join(choices)}{others}"
        is_begun = self.nearest is nearest_versions and any(one.startswith(f"{self.value}.") for one in self.offered)
        if is_begun:
            return FieldProblem(self.path, NOT_COMPLETED(value=shown(self.value), alternatives=alternatives))
        return FieldProblem(self.path, NOT_OFFERED(value=shown(self.value), alternatives=alternatives))


def profile_queries(shoot: Document, old: Document | None) -> Sequence[RelatedQuery]:
    """Queries of the profile and the bindings, as far as they are checked."""
    return [ObjectQuery(key) for key in _checked_keys(shoot, old)]


def admit_references(shoot: Document, old: Document | None, related: RelatedObjects) -> None:
    """Check that profile and bindings of a valid shoot are there. Raises InvalidResource with each that is not."""
    if not _is_checked(shoot, old):
        return
    bindings = _new_bindings(shoot, old)
    problems = [problem for key in bindings if (problem := _binding_problem(key, shoot, related.objects.get(key)))]
    key = profile_key(shoot)
    if key is not None and (old is None or key != profile_key(old)) and key not in related.objects:
        field = "spec.cloudProfile.name" if section(shoot, "spec", "cloudProfile") else "spec.cloudProfileName"
        problems.append(FieldProblem(field, NOT_THERE(object=key)))
    if problems:
        raise invalid(problems)


def _binding_problem(key: ObjectKey, shoot: Document, binding: Document | None) -> FieldProblem | None:
    """Problem of a binding that a shoot names newly; one that states no type is for any."""
    if binding is None:
        return FieldProblem(_BINDING_FIELDS[key.kind], NOT_THERE(object=key))
    types, own = provider_types(binding), section(shoot, "spec", "provider").get("type")
    if not types or own in types:
        return None
    return FieldProblem(_BINDING_FIELDS[key.kind], OTHER_BINDING(binding=key, types=", ".join(types), type=shown(own)))


def admit_offered(shoot: Document, old: Document | None, related: RelatedObjects, *, now: datetime) -> None:
    """Check a valid shoot. Raises InvalidResource with every field that is at odds with the profile."""
    if not _is_checked(shoot, old):
        return
    key = profile_key(shoot)
    profile = related.objects.get(key) if key is not None else None
    if profile is None or not (offered := profile_spec_of(profile)) or _is_surely_offered(shoot, profile, offered):
        return
    if problems := list(_problems(shoot, old, offered, now=now)):
        raise invalid(problems)


def profile_guards(shoot: Document, old: Document | None, related: RelatedObjects) -> Sequence[WritePrecondition]:
    """Conditions of the write: the profile and the bindings as they were read."""
    guards: list[WritePrecondition] = []
    for key in _checked_keys(shoot, old):
        found = related.objects.get(key)
        version = found["metadata"].get("resourceVersion") if found is not None else None
        if version:
            guards.append(unchanged(key, int(version)))
    return guards


_RESERVED = "reserved"
"""Named where a kubelet reserves something: that is never on offer without reservation, nor is another runtime."""

_SURE_LIMIT = 100
_sure: dict[str, frozenset[str]] = {}
"""Parts that are on offer for good, by the version of the profile; versions are never used twice."""


def _is_surely_offered(shoot: Document, profile: Document, offered: Document) -> bool:
    """True when everything that a shoot names stands in the profile without reservation: the common case, fast."""
    version = section(profile, "metadata").get("resourceVersion")
    if not version:
        return False
    identity = f"{section(profile, 'metadata').get('uid')}/{version}"
    sure = _sure.get(identity)
    if sure is None:
        while len(_sure) >= _SURE_LIMIT:
            del _sure[next(iter(_sure))]
        sure = _sure[identity] = frozenset(_sure_parts(offered))
    return sure.issuperset(_named_parts(section(shoot, "spec")))


def _sure_parts(offered: Document) -> Iterator[str]:
    """All that is offered without an expiration and to everybody; nothing where a shoot's nodes are limited."""
    if section(offered, "limits"):
        return
    yield f"type {offered.get('type')}"
    for region in mappings(offered.get("regions")):
        yield f"region {region.get('name')}"
        zones = [one for one in mappings(region.get("zones")) if not any(one.get(field) for field in UNAVAILABLE)]
        yield from (f"zone {region.get('name')} {zone}" for zone in _names(zones))
    types, volumes = mappings(offered.get("machineTypes")), mappings(offered.get("volumeTypes"))
    yield from (f"volume {name}" for name in _usable([one for one in volumes if not one.get("minSize")]))
    for name in _usable([one for one in types if not section(one, "storage").get("minSize")]):
        yield from (f"machine {name} {architecture}" for architecture in architectures_of_type(name, offered))
    for entry in mappings(section(offered, "kubernetes").get("versions")):
        if not entry.get("expirationDate"):
            yield f"version {entry.get('version')}"
    for image in mappings(offered.get("machineImages")):
        yield f"image {image.get('name')} None {DEFAULT_ARCHITECTURE}"
        for entry in mappings(image.get("versions")):
            if not any(entry.get(field) for field in ("expirationDate", "kubeletVersionConstraint", "cri")):
                named = f"image {image.get('name')} {entry.get('version')}"
                yield from (f"{named} {architecture}" for architecture in architectures_of(entry))


def _named_parts(spec: Document) -> Iterator[str]:
    """All that a shoot names, as `_sure_parts` does."""
    region, provider = spec.get("region"), section(spec, "provider")
    yield f"type {provider.get('type')}"
    yield f"region {region}"
    kubernetes = section(spec, "kubernetes")
    if version := kubernetes.get("version"):
        yield f"version {version}"
    if "kubelet" in kubernetes and is_reserving(kubernetes):
        yield _RESERVED
    for worker in mappings(provider.get("workers")):
        machine = section(worker, "machine")
        architecture = machine.get("architecture") or DEFAULT_ARCHITECTURE
        if kind := machine.get("type"):
            yield f"machine {kind} {architecture}"
        if image := section(machine, "image"):
            yield f"image {image.get('name')} {image.get('version')} {architecture}"
        if volume := section(worker, "volume").get("type"):
            yield f"volume {volume}"
        if "kubernetes" in worker or "cri" in worker:
            yield from _named_by_pool(worker)
        for zone in worker.get("zones") or ():
            yield f"zone {region} {zone}"


def _named_by_pool(worker: Document) -> Iterator[str]:
    if version := section(worker, "kubernetes").get("version"):
        yield f"version {version}"
    if is_reserving(section(worker, "kubernetes")):
        yield _RESERVED
    cri = section(worker, "cri")
    if cri.get("containerRuntimes") or cri.get("name") not in (None, "containerd"):
        yield f"runtime {cri.get('name')}"


def _checked_keys(shoot: Document, old: Document | None) -> Sequence[ObjectKey]:
    if not _is_checked(shoot, old):
        return ()
    key = profile_key(shoot)
    return [*(() if key is None else (key,)), *_new_bindings(shoot, old)]


def _is_checked(shoot: Document, old: Document | None) -> bool:
    if old is None:
        return True
    spec, before = section(shoot, "spec"), section(old, "spec")
    return any(spec.get(field) != before.get(field) for field in _CHECKED_FIELDS)


def _new_bindings(shoot: Document, old: Document | None) -> Sequence[ObjectKey]:
    namespace = namespace_of(shoot)
    before = set(binding_keys(section(old, "spec"), namespace)) if old is not None else set[ObjectKey]()
    return [key for key in binding_keys(section(shoot, "spec"), namespace) if key not in before]


def _problems(shoot: Document, old: Document | None, offered: Document, *, now: datetime) -> Iterator[FieldProblem]:
    spec = section(shoot, "spec")
    before = section(old, "spec") if old is not None and profile_key(old) == profile_key(shoot) else {}
    provider, kind = section(spec, "provider"), offered.get("type")
    if not before and isinstance(kind, str) and provider.get("type") not in (None, kind):
        given = shown(provider.get("type"))
        yield FieldProblem("spec.provider.type", OTHER_TYPE(type=given, profile=kind))
    for choice in (*_of_shoot(spec, before, offered, now=now), *_of_workers(spec, before, offered, now=now)):
        if problem := choice.problem:
            yield problem
    yield from _conflicts(spec, before, offered)


def _conflicts(spec: Document, before: Document, offered: Document) -> Iterator[FieldProblem]:
    """Find all that the profile does not allow of worker pools, but for what it did not allow of them before either."""
    had = _pools(before)
    if (reason := least_nodes_conflict(spec, offered)) and reason != least_nodes_conflict(before, offered):
        yield FieldProblem("spec.provider.workers", NOT_ALLOWED(reason=reason))
    for index, worker in enumerate(mappings(section(spec, "provider").get("workers"))):
        old = had.get(worker.get("name"))
        stood = () if old is None else tuple(pool_conflicts(old, before, offered))
        for conflict in pool_conflicts(worker, spec, offered):
            if conflict not in stood:
                path = f"spec.provider.workers[{index}].{conflict.field}"
                yield FieldProblem(path, NOT_ALLOWED(reason=conflict.reason))


def _pools(spec: Document) -> Mapping[object, Document]:
    return {worker.get("name"): worker for worker in mappings(section(spec, "provider").get("workers"))}


def _of_shoot(spec: Document, before: Document, offered: Document, *, now: datetime) -> Iterator[_Choice]:
    if not before:
        yield _Choice("spec.region", only_text(spec.get("region")), _names(offered.get("regions")))
    version = only_text(section(spec, "kubernetes").get("version"))
    if version != section(before, "kubernetes").get("version"):
        versions = _kubernetes_versions(offered, None if before else now)
        yield _Choice("spec.kubernetes.version", version, versions, nearest_versions)


def _of_workers(spec: Document, before: Document, offered: Document, *, now: datetime) -> Iterator[_Choice]:
    old_workers = _pools(before)
    zones = _zones(spec, offered)
    for index, worker in enumerate(mappings(section(spec, "provider").get("workers"))):
        old = old_workers.get(worker.get("name"), {})
        yield from _of_worker(f"spec.provider.workers[{index}]", worker, old, offered, now=now)
        had = old.get("zones") or ()
        for position, zone in enumerate(worker.get("zones") or ()):
            if zone not in had:
                yield _Choice(f"spec.provider.workers[{index}].zones[{position}]", only_text(zone), zones)


def _of_worker(path: str, worker: Document, old: Document, offered: Document, *, now: datetime) -> Iterator[_Choice]:
    machine, old_machine = section(worker, "machine"), section(old, "machine")
    version = only_text(section(worker, "kubernetes").get("version"))
    if version != section(old, "kubernetes").get("version"):
        versions = _kubernetes_versions(offered, None if old else now)
        yield _Choice(f"{path}.kubernetes.version", version, versions, nearest_versions)
    architecture = _Choice(f"{path}.machine.architecture", architecture_of(machine), ())
    is_other = not old_machine or architecture_of(machine) != architecture_of(old_machine)
    if is_other or differ(machine, old_machine, "type"):
        kind = only_text(machine.get("type"))
        yield _Choice(f"{path}.machine.type", kind, _usable(offered.get("machineTypes")))
        yield architecture._replace(offered=architectures_of_type(kind, offered))
    if is_other or differ(machine, old_machine, "image"):
        had = only_text(section(old_machine, "image").get("version"))
        yield from _of_image(f"{path}.machine.image", section(machine, "image"), had, offered, now=now)
        yield architecture._replace(offered=architectures_of_image(section(machine, "image"), offered))
    volume = section(worker, "volume").get("type")
    if volume != section(old, "volume").get("type"):
        yield _Choice(f"{path}.volume.type", only_text(volume), _usable(offered.get("volumeTypes")))


def _of_image(path: str, image: Document, had: str, offered: Document, *, now: datetime) -> Iterator[_Choice]:
    """The image of a pool, and its version; `had`: the version that the pool had, from which it may also expire."""
    images: Mapping[str, Document] = {
        only_text(each.get("name")): each for each in mappings(offered.get("machineImages"))
    }
    name = only_text(image.get("name"))
    yield _Choice(f"{path}.name", name, images)
    if name in images:
        listed, above = mappings(images[name].get("versions")), numbers_of(had)
        higher = [one for one in listed if had and numbers_of(one.get("version")) >= above]
        versions = dict.fromkeys((*_unexpired(listed, now), *_unexpired(higher, None)))
        yield _Choice(f"{path}.version", only_text(image.get("version")), versions, nearest_versions)


def _kubernetes_versions(offered: Document, now: datetime | None) -> Collection[str]:
    """Versions on offer: to what exists also those that have expired (`now` is None), for its forced updates."""
    return _unexpired(section(offered, "kubernetes").get("versions"), now)


def _zones(spec: Document, offered: Document) -> Collection[str]:
    """Zones of the shoot's region."""
    regions = [region for region in mappings(offered.get("regions")) if region.get("name") == spec.get("region")]
    return _names(regions[0].get("zones")) if regions else ()


def _names(value: object) -> Collection[str]:
    return [name for entry in mappings(value) if (name := only_text(entry.get("name")))]


def _usable(value: object) -> Collection[str]:
    """Names of machine or volume types, without those that nobody may choose any more."""
    return _names([entry for entry in mappings(value) if entry.get("usable") is not False])


def _unexpired(value: object, now: datetime | None) -> Collection[str]:
    """Versions that have not expired; all of them without an instant."""
    return [
        version
        for entry in mappings(value)
        if (version := only_text(entry.get("version")))
        and (now is None or not is_expired(entry.get("expirationDate"), now))
    ]
