"""Index values of an object, and the effects of its changes on scheduling, computed from the document alone.

The store's functions parse no manifest, so every writer computes them here.
"""

from typing import Any, NamedTuple, cast

from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import mappings
from gardenbus.common.api.fleet.overrides import selector_claims
from gardenbus.common.api.garden.backup_references import needed_by_backup
from gardenbus.common.api.garden.busy_shoots import operation_key
from gardenbus.common.api.garden.credentials_bindings import references_of
from gardenbus.common.api.garden.named_references import named_reference, named_references
from gardenbus.common.api.garden.plants import secret_of
from gardenbus.common.api.garden.profile_parts import binding_keys, part_references, profile_key, used_parts
from gardenbus.common.api.garden.quotas import demand_of
from gardenbus.common.api.garden.resource_amounts import lines_of
from gardenbus.common.api.garden.scheduling_order import band_of
from gardenbus.common.api.garden.scheduling_requirements import resolved_requirements
from gardenbus.common.api.garden.seeds import (
    allocatable_resources,
    may_unblock,
    removal_owner,
    scheduling_content,
    shoot_capacity,
)
from gardenbus.common.api.garden.shoot_groups import group_lines
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.api.resource_quotas import quota_lines
from gardenbus.common.api.uids import is_uid

DEFAULT_SCHEDULER_NAME = "default-scheduler"
REGION_CONFIG_LABEL = ("scheduling.gardener.cloud/purpose", "region-config")

UNBLOCKING_KINDS = ("seed", "cloudprofile", "namespacedcloudprofile", "project", "configmap")
"""Kinds whose changes may unblock unschedulable shoots; their announcements carry the unblock index."""

FOLLOWING_KINDS = ("managedseed", "shootstate")
"""Kinds that the gardenlets of a shoot's seeds may read."""


LATER_INDEXED_KINDS = (
    "shoot",
    "seed",
    "resourcequota",
    "secretbinding",
    "credentialsbinding",
    "backupentry",
    "controllerregistration",
    "namespacedcloudprofile",
)
"""Kinds that older versions stored without the references, claims, quotas and demands of today."""


class IndexKeys(NamedTuple):
    """Index values of one object. Owners are uids; claims are free-form.

    References are `ObjectKey.stored`; of a Shoot also the parts of its profile (`profile_parts.part_references`), and
    of Shoots, Seeds and Plants what they name (`named_references.named_reference`).
    """

    scheduler_name: str = ""  # Shoot: scheduler that has to bind it; "" for a self-hosted one, and while it has gates
    capacity: str = ""  # Seed: number of shoots; "" is without limit
    references: tuple[str, ...] = ()  # objects that must not be deleted before this one
    owners: tuple[str, ...] = ()
    claims: tuple[str, ...] = ()  # values that must be unique
    removal_owner: str = ""  # Seed: owner of its removal annotation; "" without one
    operation: str = ""  # Shoot: what it is counted by (`busy_shoots.operation_key`)
    quota: tuple[str, ...] = ()  # ResourceQuota: `resource_quotas.quota_lines`
    demands: tuple[str, ...] = ()  # Shoot: `<binding> <count> <unit>`, its demand through each binding
    requests: tuple[str, ...] = ()  # Shoot: `<resource> <amount>` of each that it requests besides `shoots`
    groups: tuple[str, ...] = ()  # Shoot: `shoot_groups.group_lines`
    band: str = ""  # Shoot: `scheduling_order.band_of` its priority
    allocatable: tuple[str, ...] = ()  # Seed: the same of each that is allocatable there


class ChangeEffects(NamedTuple):
    """Effects of a change on scheduling.

    `outdates_decisions`: earlier decisions on this Seed are outdated; `unblocks`: an unschedulable shoot may fit.
    """

    outdates_decisions: bool
    unblocks: bool


def index_keys_of(document: Document) -> IndexKeys:
    """Compute the index values of a manifest that passed validation."""
    metadata, spec = section(document, "metadata"), section(document, "spec")
    owners = tuple(
        owner["uid"] for owner in metadata.get("ownerReferences") or () if owner.get("uid") and is_uid(owner["uid"])
    )
    match document["kind"]:
        case "Shoot":
            requirements = resolved_requirements(section(metadata, "annotations"))
            return IndexKeys(
                scheduler_name=""
                if requirements.gates or _is_self_hosted(spec)
                else spec.get("schedulerName") or DEFAULT_SCHEDULER_NAME,
                references=_shoot_references(document, is_deleting=bool(metadata.get("deletionTimestamp"))),
                owners=owners,
                operation=operation_key(section(document, "status", "lastOperation")),
                demands=_demands(metadata["namespace"], spec),
                requests=lines_of(requirements.requests),
                groups=group_lines(requirements.group_rules),
                band=band_of(requirements.priority),
            )
        case "Seed":
            capacity = shoot_capacity(document)
            return IndexKeys(
                capacity="" if capacity is None else str(capacity),
                references=_named(document),
                owners=owners,
                removal_owner=removal_owner(document),
                allocatable=lines_of(allocatable_resources(document).items()),
            )
        case "Project":
            namespace = spec.get("namespace")
            return IndexKeys(claims=(f"namespace/{namespace}",) if namespace else (), owners=owners)
        case "ManagedSeed":
            namespace, shoot = metadata["namespace"], section(spec, "shoot").get("name")
            if not shoot:
                return IndexKeys(owners=owners)
            return IndexKeys(
                references=(ObjectKey("shoot", namespace, shoot).stored,),
                owners=owners,
                claims=(f"managedseed-shoot/{namespace}/{shoot}",),
            )
        case _:
            return _other_keys(document, owners)


def _other_keys(document: Document, owners: tuple[str, ...]) -> IndexKeys:
    spec = section(document, "spec")
    match document["kind"]:
        case "NamespacedCloudProfile":
            parent = section(spec, "parent").get("name")
            references = (ObjectKey("cloudprofile", "", parent).stored,) if parent else ()
            return IndexKeys(references=references, owners=owners)
        case "SeedAutoscaler":
            target = section(spec, "scaleTargetRef").get("name")
            claims = (f"seedautoscaler-target/{section(document, 'metadata')['namespace']}/{target}",) if target else ()
            return IndexKeys(owners=owners, claims=claims)
        case "SecretBinding" | "CredentialsBinding":
            return IndexKeys(references=references_of(document), owners=owners)
        case "Plant":
            return IndexKeys(references=(named_reference(secret_of(document)),), owners=owners)
        case "BackupBucket" | "BackupEntry":
            named = needed_by_backup(document)
            return IndexKeys(references=() if named is None else (named.stored,), owners=owners)
        case "ControllerInstallation":
            return IndexKeys(references=_installed(spec), owners=owners)
        case "ControllerRegistration":
            return IndexKeys(owners=owners, claims=_primaries(spec))
        case "ClusterResourceOverride" | "ResourceOverride":
            return IndexKeys(owners=owners, claims=selector_claims(document))
        case "ResourceQuota":
            return IndexKeys(quota=quota_lines(spec), owners=owners)
        case _:
            return IndexKeys(owners=owners)


def _is_self_hosted(spec: Document) -> bool:
    """True when a worker pool of the shoot runs its control plane: it needs no scheduler."""
    workers: Any = section(spec, "provider").get("workers")
    pools = cast("list[Any]", workers) if isinstance(workers, list) else []
    return any(isinstance(pool, dict) and cast("Document", pool).get("controlPlane") is not None for pool in pools)


def _named(document: Document) -> tuple[str, ...]:
    """The Secrets, ConfigMaps and WorkloadIdentities that a Shoot or a Seed names, each once."""
    return tuple(dict.fromkeys(named_reference(each.key) for each in named_references(document)))


def _shoot_references(shoot: Document, *, is_deleting: bool) -> tuple[str, ...]:
    """References of a shoot, and until it is deleted the parts of its profile that it uses."""
    spec, namespace = section(shoot, "spec"), section(shoot, "metadata")["namespace"]
    keys = [ObjectKey("namespace", "", namespace)]
    profile = profile_key(spec, namespace)
    if profile is not None:
        keys.append(profile)
    if exposure_class := spec.get("exposureClassName"):
        keys.append(ObjectKey("exposureclass", "", exposure_class))
    keys += binding_keys(spec, namespace)
    parts = part_references(profile, used_parts(spec)) if profile is not None and not is_deleting else ()
    return (*(key.stored for key in keys), *parts, *_named(shoot))


def _primaries(registration_spec: Document) -> tuple[str, ...]:
    """Claims of a ControllerRegistration: the kinds and types of extension that it is primary for."""
    primary = [
        f"primary/{each.get('kind')}/{each.get('type')}"
        for each in mappings(registration_spec.get("resources"))
        if each.get("primary") is not False
    ]
    return tuple(claim for claim in dict.fromkeys(primary) if claim.isprintable())


def _installed(installation_spec: Document) -> tuple[str, ...]:
    """References of a ControllerInstallation: its registration and its seed."""
    named = (("controllerregistration", "registrationRef"), ("seed", "seedRef"))
    names = ((kind, section(installation_spec, field).get("name")) for kind, field in named)
    return tuple(ObjectKey(kind, "", name).stored for kind, name in names if isinstance(name, str) and name)


def _demands(namespace: str, spec: Document) -> tuple[str, ...]:
    """Demand of a shoot, once for each of its bindings."""
    bindings = binding_keys(spec, namespace)
    if not bindings:
        return ()
    demand = demand_of(spec, namespace)
    return tuple(f"{binding.stored} {count} {unit}" for binding in bindings for unit, count in demand.items())


def effects_of(kind: str, old: Document | None, new: Document | None) -> ChangeEffects:
    """Effects of a creation (`old` None), change or removal (`new` None) of an object on unschedulable shoots."""
    if kind == "seed":
        is_outdated = old is None or (new is not None and scheduling_content(old) != scheduling_content(new))
        return ChangeEffects(outdates_decisions=is_outdated, unblocks=may_unblock(old, new))
    if kind not in UNBLOCKING_KINDS or (kind == "configmap" and not (_is_region_config(old) or _is_region_config(new))):
        return ChangeEffects(outdates_decisions=False, unblocks=False)
    return ChangeEffects(outdates_decisions=False, unblocks=_scheduling_input(old) != _scheduling_input(new))


def _is_region_config(document: Document | None) -> bool:
    name, value = REGION_CONFIG_LABEL
    return document is not None and section(document, "metadata", "labels").get(name) == value


def _scheduling_input(document: Document | None) -> object:
    """Content of a profile, Project or ConfigMap that scheduling reads."""
    if document is None:
        return None
    metadata = section(document, "metadata")
    content = [document.get("spec"), document.get("data"), section(document, "status").get("cloudProfileSpec")]
    return [*content, metadata.get("labels"), metadata.get("annotations")]
