"""Fields of understood kinds that nothing acts on, and fields that others have replaced: both are taken with a warning.

A line goes when something acts on its field. What belongs to the cluster itself (`spec.kubernetes`, `spec.addons`,
`spec.extensions` and the like) is not here: the gardenlet gives it to its backend.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, cast

from gardenbus.common.api.document import Document, section


class FieldNote(NamedTuple):
    """A field that is taken with a warning: `why` nothing acts on it, or what replaces it."""

    kind: str
    path: str
    why: str


_NO_COMPONENT = "no such component runs on the seeds"

UNUSED: Sequence[FieldNote] = (
    FieldNote("Shoot", "spec.maintenance.autoRotation", "credentials are not rotated by themselves"),
    FieldNote("Shoot", "spec.monitoring", "no alerts are sent"),
    FieldNote(
        "Shoot",
        "spec.seedSelector.providerTypes",
        "as in Gardener, its scheduler goes by spec.seedSelector.providerTypes of the CloudProfile; only a bind "
        "by hand checks the shoot's own",
    ),
    FieldNote("Seed", "spec.settings.dependencyWatchdog", _NO_COMPONENT),
    FieldNote("Seed", "spec.settings.excessCapacityReservation", _NO_COMPONENT),
    FieldNote("Seed", "spec.settings.loadBalancerServices", _NO_COMPONENT),
    FieldNote("Seed", "spec.settings.persistentVolumeClaimAutoscaler", _NO_COMPONENT),
    FieldNote("Seed", "spec.settings.shootDNS", "Gardener has removed it: a shoot says in spec.dns"),
    FieldNote("Seed", "spec.settings.topologyAwareRouting", _NO_COMPONENT),
    FieldNote("Seed", "spec.settings.verticalPodAutoscaler", _NO_COMPONENT),
    FieldNote("Seed", "spec.volume", "no volumes are made on the seeds here"),
    FieldNote("Seed", "spec.secretRef", "Gardener has removed it: a gardenlet has its own credentials for its seed"),
    FieldNote("Bastion", "spec.ingress", "no host is made: the Bastion is stored until it expires"),
    FieldNote("CloudProfile", "spec.bastion", "no machines are made for bastions"),
    FieldNote(
        "ManagedSeed", "spec.gardenlet.deployment", "a gardenlet is no Deployment here: its host's process runs it"
    ),
    FieldNote("MemberCluster", "spec.identity", "who may report for a cluster is up to the accounts of the bus"),
)
"""Fields that nothing acts on, and why."""

_NO_SHORT_CUT = "the deletion is tried again, and leaves out no step"
_NO_ROTATION = "the shoot is reconciled, and no credentials are rotated nor workers rolled out"
_OPERATION = "gardener.cloud/operation"
ANNOTATIONS: Mapping[str, Sequence[tuple[str, tuple[str, ...], str]]] = {
    "Shoot": (
        ("shoot.gardener.cloud/tasks", ("",), "a reconciliation has no tasks of its own"),
        (_OPERATION, ("rotate-", "rollout-"), _NO_ROTATION),
        ("confirmation.gardener.cloud/force-deletion", ("true",), _NO_SHORT_CUT),
        ("maintenance.gardener.cloud/operation", ("rotate-", "rollout-"), f"in its window {_NO_ROTATION}"),
    ),
    "Seed": (
        (_OPERATION, ("renew-garden-access-secrets",), "no such secrets are on the seeds here"),
        (_OPERATION, ("renew-workload-identity-tokens",), "no such tokens are on the seeds here"),
    ),
    "ManagedSeed": (
        (_OPERATION, ("renew-kubeconfig",), "its Seed has the certificate: request it there (gardenbus annotate seed)"),
    ),
}
"""Annotations of a kind that nothing acts on, what an entry of theirs (`;` apart) begins with then, and why."""

DEPRECATED: Sequence[FieldNote] = (
    FieldNote("Shoot", "spec.cloudProfileName", "write spec.cloudProfile: {kind: CloudProfile, name: …}"),
    FieldNote("Shoot", "spec.secretBindingName", "write spec.credentialsBindingName"),
    FieldNote("Seed", "spec.backup.secretRef", "write spec.backup.credentialsRef"),
    FieldNote("Seed", "spec.dns.provider.secretRef", "write spec.dns.provider.credentialsRef"),
)
"""Fields that others have replaced, and which."""

_SEED_TEMPLATES = ("gardenlet.config.seedConfig", "seedTemplate", "seed")
"""Places of the Seed in the spec of a ManagedSeed."""

_TEMPLATES: Mapping[str, Sequence[tuple[str, str]]] = {
    "ManagedSeedSet": (
        ("Shoot", "spec.shootTemplate."),
        ("ManagedSeed", "spec.template."),
        *(("Seed", f"spec.template.spec.{place}.") for place in _SEED_TEMPLATES),
    ),
    "ManagedSeed": tuple(("Seed", f"spec.{place}.") for place in _SEED_TEMPLATES),
    "Gardenlet": (("Seed", "spec.config.seedConfig."),),
}
"""Kinds whose manifests hold others, and where."""


class FoundField(NamedTuple):
    """A field of a manifest that is taken with a warning: the steps of its path, and its value."""

    path: tuple[str, ...]
    value: Any
    warning: str


def found_fields(document: Document) -> Iterator[FoundField]:
    """The fields of a manifest, and of the templates in it, that are taken with a warning."""
    kind = str(document.get("kind"))
    if annotations := ANNOTATIONS.get(kind):
        yield from _found_annotations(document, annotations)
    watched, notes = _notes_of(kind)
    spec: Any = document.get("spec")
    if not isinstance(spec, dict) or watched.isdisjoint(cast("Document", spec)):
        return
    for _, steps, warning in notes:
        here: Any = document
        for step in steps:
            if not isinstance(here, dict):
                here = None
                break
            here = cast("Document", here).get(step)
        if here is not None:
            yield FoundField(steps, here, warning)


def _found_annotations(document: Document, notes: Sequence[tuple[str, tuple[str, ...], str]]) -> Iterator[FoundField]:
    annotations = section(document, "metadata", "annotations")
    for name, prefixes, why in notes if annotations else ():
        value = annotations.get(name)
        if isinstance(value, str) and any(one.strip().startswith(prefixes) for one in value.split(";") if one.strip()):
            warning = f"metadata.annotations[{name}]: nothing acts on it: {why}"
            yield FoundField(("metadata", "annotations", name), value, warning)


@lru_cache(maxsize=128)
def _notes_of(kind: str) -> tuple[frozenset[str], Sequence[tuple[str, tuple[str, ...], str]]]:
    """The fields below `spec` that lead to a note, and the notes: path, its steps, warning."""
    notes: list[tuple[str, tuple[str, ...], str]] = []
    for of_kind, prefix in ((kind, ""), *_TEMPLATES.get(kind, ())):
        for all_notes, sentence in ((UNUSED, "nothing acts on it: {}"), (DEPRECATED, "is deprecated: {}")):
            for note in all_notes:
                if note.kind == of_kind:
                    path = prefix + note.path
                    notes.append((path, tuple(path.split(".")), f"{path}: {sentence.format(note.why)}"))
    return frozenset(steps[1] for _, steps, _ in notes), notes
