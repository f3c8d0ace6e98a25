"""Fields of understood kinds that nothing acts on, and fields that others have replaced: both are taken with a warning.

A line goes when something acts on its field. What belongs to the cluster itself (`spec.kubernetes`, `spec.addons`,
`spec.extensions` and the like) is not here: the gardenlet gives it to its backend.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, cast

from gardenbus.apiserver.domain.fields.check import path_text
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.manifests.strict_json import ValuePath


class FieldNote(NamedTuple):
    """A field that is taken with a warning: `why` nothing acts on it, or what replaces it."""

    kind: str
    path: str
    """From the manifest on; `[]` after a list leads into its entries."""
    why: str
    done: str = ""
    """The value by which it requests what is done anyway, which needs no warning."""


_NO_COMPONENT = "no such component runs on the seeds"
_NO_MACHINES = "no machines are made here"
_NOT_INSTALLED = "nothing is installed on seeds: whoever installs a controller renews its heartbeat"

_OF_PLACEMENTS = (
    ("spec.strategy.reportBackStrategy.type", "the status of what was placed is not copied to the hub", "Disabled"),
    ("spec.statusReportingScope", "the status is in the placement alone", "ClusterScopeOnly"),
)

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
    FieldNote("CloudProfile", "spec.bastion", "which machine a Bastion gets is its extension's choice"),
    *(
        FieldNote(kind, path, _NO_MACHINES)
        for kind in ("CloudProfile", "NamespacedCloudProfile")
        for path in ("spec.caBundle", "spec.machineTypes[].machineControllerManager")
    ),
    FieldNote("ExposureClass", "handler", "no ingress gateways run on the seeds; what scheduling states is merged"),
    FieldNote("ControllerDeployment", "helm", _NOT_INSTALLED),
    FieldNote("ControllerDeployment", "providerConfig", _NOT_INSTALLED),
    FieldNote("ControllerDeployment", "injectGardenKubeconfig", _NOT_INSTALLED),
    FieldNote(
        "ControllerRegistration", "spec.resources[].continuousEndpointUpdate", "no endpoints are written by gardenlets"
    ),
    FieldNote(
        "ManagedSeed", "spec.gardenlet.deployment", "a gardenlet is no Deployment here: its host's process runs it"
    ),
    FieldNote("MemberCluster", "spec.identity", "who may report for a cluster is up to the accounts of the bus"),
    FieldNote(
        "MemberCluster", "spec.deleteOptions.validationMode", "nothing is checked before a cluster is deleted", "Skip"
    ),
    *(FieldNote(kind, *rest) for kind in ("ClusterResourcePlacement", "ResourcePlacement") for rest in _OF_PLACEMENTS),
)
"""Fields that nothing acts on, and why."""

_NO_ROTATION = "the shoot is reconciled, and no credentials are rotated nor workers rolled out"
_OPERATION = "gardener.cloud/operation"
_STEPS = (
    *("skip-cleanup", "skip-readiness", "infrastructure-cleanup-wait-period-seconds"),
    *(f"cleanup-{what}-finalize-grace-period-seconds" for what in ("webhooks", "extended-apis")),
    *(f"cleanup-{what}-finalize-grace-period-seconds" for what in ("kubernetes-resources", "namespaces")),
    "cloud-config-execution-max-delay-seconds",
)
"""Annotations of a Shoot, below `shoot.gardener.cloud/`, about steps of Gardener's flows."""
ANNOTATIONS: Mapping[str, Sequence[tuple[str, tuple[str, ...], str]]] = {
    "Shoot": (
        ("shoot.gardener.cloud/tasks", ("",), "a reconciliation has no tasks of its own"),
        ("shoot.gardener.cloud/ignore-alerts", ("true",), "no alerts are sent"),
        *((f"shoot.gardener.cloud/{name}", ("",), "no operation on a shoot has such a step here") for name in _STEPS),
        (_OPERATION, ("rotate-", "rollout-"), _NO_ROTATION),
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

_ENTRIES = "[]"
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

    path: ValuePath
    value: Any
    warning: str


class _WatchedField(NamedTuple):
    """A field with a note, by the steps to it (`[]`: into the entries of a list)."""

    steps: tuple[str, ...]
    done: str
    sentence: str


def found_fields(document: Document) -> Iterator[FoundField]:
    """The fields of a manifest, and of the templates in it, that are taken with a warning; of a list the first."""
    kind = str(document.get("kind"))
    if annotations := ANNOTATIONS.get(kind):
        yield from _found_annotations(document, annotations)
    beside_spec, below_spec, watched = _watched(kind)
    spec: Any = document.get("spec")
    is_below = isinstance(spec, dict) and not below_spec.isdisjoint(cast("Document", spec))
    if not is_below and beside_spec.isdisjoint(document):
        return
    for field in watched:
        found = next(_at(document, field.steps, ()), None)
        if found is not None and not (field.done and found[1] == field.done):
            path, value = found
            yield FoundField(path, value, f"{path_text(path)}: {field.sentence}")


def _at(here: Any, steps: tuple[str, ...], path: ValuePath) -> Iterator[tuple[ValuePath, Any]]:
    """The values at some steps below a value, each with its path."""
    if here is None or not steps:
        if here is not None:
            yield path, here
        return
    step, *rest = steps
    if step == _ENTRIES and isinstance(here, list):
        for index, entry in enumerate(cast("list[Any]", here)):
            yield from _at(entry, tuple(rest), (*path, index))
    elif isinstance(here, dict):
        yield from _at(cast("Document", here).get(step), tuple(rest), (*path, step))


def _found_annotations(document: Document, notes: Sequence[tuple[str, tuple[str, ...], str]]) -> Iterator[FoundField]:
    annotations = section(document, "metadata", "annotations")
    for name, prefixes, why in notes if annotations else ():
        value = annotations.get(name)
        if isinstance(value, str) and any(one.strip().startswith(prefixes) for one in value.split(";") if one.strip()):
            warning = f"metadata.annotations[{name}]: nothing acts on it: {why}"
            yield FoundField(("metadata", "annotations", name), value, warning)


@lru_cache(maxsize=128)
def _watched(kind: str) -> tuple[frozenset[str], frozenset[str], Sequence[_WatchedField]]:
    """The fields beside, and below, `spec` that lead to a note, and all that have one."""
    watched: list[_WatchedField] = []
    for of_kind, prefix in ((kind, ""), *_TEMPLATES.get(kind, ())):
        for all_notes, sentence in ((UNUSED, "nothing acts on it: {}"), (DEPRECATED, "is deprecated: {}")):
            for note in all_notes:
                if note.kind == of_kind:
                    steps = tuple(f"{prefix}{note.path}".replace("[]", f".{_ENTRIES}").split("."))
                    watched.append(_WatchedField(steps, note.done, sentence.format(note.why)))
    beside_spec = frozenset(field.steps[0] for field in watched if field.steps[0] != "spec")
    return beside_spec, frozenset(field.steps[1] for field in watched if field.steps[0] == "spec"), watched
