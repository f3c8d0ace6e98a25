"""The ControllerRegistrations that a seed needs, and the ControllerInstallation of one there.

Wanted are those

- of policy Always, and of policy AlwaysExceptNoShoots if the seed has a shoot, unless they are being deleted;
- that offer a kind and type which something on the seed needs, primary or not;
- whose installation there is still required;

and of these the ones whose seedSelector matches the seed's labels.

Source: Gardener's `pkg/controllermanager/controller/controllerregistration/seed`.
"""

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from hashlib import sha256
from typing import NamedTuple

from gardenbus.common.api.document import Document, canonical, section
from gardenbus.common.api.document_parts import is_deleting, mappings, name_of, only_text, without
from gardenbus.common.api.garden.extensions import KindType, resources_of
from gardenbus.common.api.selectors import parse_selector

DEPLOYMENT = "controllerdeployment"
INSTALLATION = "controllerinstallation"
REGISTRATION = "controllerregistration"

POD_SECURITY = "security.gardener.cloud/pod-security-enforce"
"""Annotation that an installation has from its registration."""

_HASH_DIGITS = 16
_NAME_DIGITS = 10


class WantedRegistrations(NamedTuple):
    """Names of the registrations that a seed needs."""

    names: frozenset[str]


class NotRegistered(NamedTuple):
    """Something is needed that no registration offers, or a registration is gone: nothing is decided then."""

    message: str


class SeedFacts(NamedTuple):
    """Facts of a seed that decide which registrations it needs."""

    kinds: AbstractSet[KindType]
    """Kinds and types that its shoots, buckets and entries need, and the seed itself."""

    labels: Mapping[str, str]
    required: AbstractSet[str]
    """Registrations whose installations on it are required."""

    has_shoots: bool
    is_deleting: bool


def wanted_registrations(seed: SeedFacts, registrations: Sequence[Document]) -> WantedRegistrations | NotRegistered:
    """Decide which registrations a seed needs. Raises ValueError for a selector that cannot be read."""
    by_name = {name_of(each): each for each in registrations}
    offering: dict[KindType, list[str]] = {}
    for name, registration in by_name.items():
        for resource in resources_of(registration):
            offering.setdefault((str(resource.get("kind")), str(resource.get("type"))), []).append(name)
    wanted = {name for name, registration in by_name.items() if _is_wanted_always(registration, seed)}
    for kind, type_ in sorted(seed.kinds):
        if (kind, type_) not in offering:
            return NotRegistered(
                f'need to install an extension controller for "{kind}/{type_}" but no appropriate '
                "ControllerRegistration found"
            )
        wanted.update(offering[kind, type_])
    wanted.update(seed.required)
    if missing := sorted(wanted - by_name.keys()):
        return NotRegistered(f'ControllerRegistration with name "{missing[0]}" not found')
    return WantedRegistrations(frozenset(name for name in wanted if _selects(by_name[name], seed.labels)))


def installation_name(registration: Document, seed: Document) -> str:
    """The name of the installation of a registration on a seed: one for each pair, whoever creates it."""
    uids = "/".join(str(section(each, "metadata").get("uid")) for each in (registration, seed))
    return f"{name_of(registration)}-{sha256(uids.encode()).hexdigest()[:_NAME_DIGITS]}"


def installation(
    registration: Document,
    seed: Document,
    deployment: Document | None,
    resources: Iterable[Document],
    old: Document | None,
) -> Document:
    """The ControllerInstallation of a registration on a seed; `old` itself where nothing that counts has changed.

    The versions that it refers to are those of when a hash last changed: a status of the Seed changes no installation.
    """
    spec: Document = {
        "registrationRef": _reference(registration),
        "seedRef": _reference(seed),
        **({"deploymentRef": _reference(deployment)} if deployment is not None else {}),
        **({"resourceRefs": listed} if (listed := [_resource_reference(each) for each in resources]) else {}),
    }
    labels = {
        "registration-spec-hash": _hash(section(registration, "spec")),
        "seed-spec-hash": _hash(section(seed, "spec")),
        **({"deployment-hash": _deployment_hash(deployment)} if deployment is not None else {}),
    }
    security = section(registration, "metadata", "annotations").get(POD_SECURITY)
    annotations = {} if security is None else {POD_SECURITY: security}
    if old is None:
        metadata: Document = {"name": installation_name(registration, seed), "labels": labels}
        if annotations:
            metadata["annotations"] = annotations
        return {
            "apiVersion": "core.gardener.cloud/v1beta1",
            "kind": "ControllerInstallation",
            "metadata": metadata,
            "spec": spec,
        }
    metadata = section(old, "metadata")
    merged: Document = {
        **metadata,
        "labels": {**without(section(metadata, "labels"), "deployment-hash"), **labels},
        **({"annotations": {**section(metadata, "annotations"), **annotations}} if annotations else {}),
    }
    if merged == metadata and _names(spec) == _names(section(old, "spec")):
        return old
    return {
        **old,
        "metadata": merged,
        "spec": {**without(section(old, "spec"), "deploymentRef", "resourceRefs"), **spec},
    }


def deployment_name(registration: Document) -> str:
    """The ControllerDeployment of a registration; "" without one. There is one at most."""
    references = mappings(section(registration, "spec", "deployment").get("deploymentRefs"))
    return only_text(references[0].get("name")) if references else ""


def resource_references(deployment: Document | None) -> list[tuple[str, str]]:
    """Kind (Secret or ConfigMap) and name of each object of the namespace `garden` that a deployment names."""
    found = (section(each, "resourceRef") for each in mappings((deployment or {}).get("resources")))
    return [
        (str(each["kind"]), str(each["name"]))
        for each in found
        if each.get("kind") in ("Secret", "ConfigMap") and only_text(each.get("name"))
    ]


def held_message(registration: str, installations: Sequence[str]) -> str:
    """Gardener's error for a deleted registration that installations name."""
    names = " ".join(installations)
    return (
        f'cannot remove finalizer of ControllerRegistration "{registration}" because still found '
        f"ControllerInstallations: [{names}]"
    )


def pending_message(registration: str) -> str:
    """Gardener's error while an installation that is needed again is still being deleted."""
    return (
        f'cannot deploy new ControllerInstallation for "{registration}" because the deletion of the old '
        "ControllerInstallation is still pending"
    )


def _is_wanted_always(registration: Document, seed: SeedFacts) -> bool:
    match section(registration, "spec", "deployment").get("policy"):
        case "Always":
            return not is_deleting(registration) and not seed.is_deleting
        case "AlwaysExceptNoShoots":
            return not is_deleting(registration) and seed.has_shoots
        case _:
            return False


def _selects(registration: Document, labels: Mapping[str, str]) -> bool:
    selector = section(registration, "spec", "deployment").get("seedSelector")
    return not selector or parse_selector(selector).matches(labels)


def _reference(document: Document) -> Document:
    return {"name": name_of(document), "resourceVersion": str(section(document, "metadata").get("resourceVersion"))}


def _resource_reference(document: Document) -> Document:
    namespace = section(document, "metadata").get("namespace")
    return {"kind": document.get("kind"), **_reference(document), "namespace": namespace}


def _names(spec: Document) -> object:
    """Objects that an installation refers to; of those without a hash, the version."""
    named = [section(spec, field).get("name") for field in ("registrationRef", "seedRef", "deploymentRef")]
    return named, mappings(spec.get("resourceRefs"))


def _deployment_hash(deployment: Document) -> str:
    return _hash({name: deployment[name] for name in ("type", "providerConfig", "helm") if name in deployment})


def _hash(value: object) -> str:
    return sha256(canonical(value)).hexdigest()[:_HASH_DIGITS]
