"""The annotation `shoot.gardener.cloud/use-as-seed`, the older way to make a shoot a seed.

It is a list of flags and settings: `true,protected,shootDefaults.pods=100.96.0.0/11`. Without the flag `true` it has no
effect. Source: Gardener's `ReadShootedSeed` and its seed registration controller, up to v1.37.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from gardenbus.common.api.document import SEED_LABEL_PREFIX, STATUS_LABEL, Document, section
from gardenbus.common.api.document_parts import mappings, namespace_of
from gardenbus.common.api.garden.managed_seeds import GARDENLET_API_VERSION, GARDENLET_KIND, replaced
from gardenbus.common.api.garden.seed_management import DEFAULT_SHOOTS, USE_AS_SEED
from gardenbus.common.api.keys import GARDEN_NAMESPACE
from gardenbus.common.api.kinds import SEED_MANAGEMENT
from gardenbus.common.api.owners import controller_reference
from gardenbus.common.api.shown_values import shown

FIELD = f"metadata.annotations[{USE_AS_SEED}]"

MADE_FROM = "seedmanagement.gardener.cloud/made-from"
"""On a ManagedSeed: what it was made from. With `use-as-seed` and its shoot as owner it follows that annotation."""

MADE_FROM_ANNOTATION = "use-as-seed"

PROTECTED_TAINT = "seed.gardener.cloud/protected"

_ON, _OFF = "true", "false"
_NO_BACKUP = "none"
_WITHOUT_EFFECT = "apiServer."

_Path = tuple[str, ...]
_Values = list[tuple[_Path, Any]]

_FLAGS: Mapping[str, _Values] = {
    "protected": [(("taints",), [{"key": PROTECTED_TAINT}])],
    "unprotected": [],
    "visible": [(("settings", "scheduling", "visible"), True)],
    "invisible": [(("settings", "scheduling", "visible"), False)],
    "disable-capacity-reservation": [(("settings", "excessCapacityReservation", "enabled"), False)],
}
"""Values that a flag sets in the spec of the seed."""

_WAYS = frozenset({"no-gardenlet", "use-serviceaccount-bootstrapping", "with-secret-ref"})
"""Flags that configure the gardenlet, not the spec of the seed."""

_SETTINGS: Mapping[str, _Path] = {
    "minimumVolumeSize": ("volume", "minimumSize"),
    "shootDefaults.pods": ("networks", "shootDefaults", "pods"),
    "shootDefaults.services": ("networks", "shootDefaults", "services"),
    "backup.provider": ("backup", "provider"),
    "backup.region": ("backup", "region"),
    "backup.secretRef.name": ("backup", "secretRef", "name"),
    "backup.secretRef.namespace": ("backup", "secretRef", "namespace"),
    "ingress.controller.kind": ("ingress", "controller", "kind"),
}
"""Path of a setting in the spec of the seed."""

_PREFIXES: Mapping[str, _Path] = {
    "providerConfig.": ("provider", "providerConfig"),
    "ingress.controller.providerConfig.": ("ingress", "controller", "providerConfig"),
}
"""Settings of which the rest of the name is a path below this place."""

_DEEPEST = 32
"""Dots in the name of a setting; deeper ones are ignored, as unknown ones are."""

_BALANCER = "loadBalancerServices.annotations."
_FEATURE = "featureGates."
_RESOURCES = {"resources.capacity.": "capacity", "resources.reserved.": "reserved"}


class RequestedSeed(NamedTuple):
    """The ManagedSeed that a shoot's annotation requests (None: none), and warnings for its sender."""

    managed_seed: Document | None
    warnings: tuple[str, ...] = ()


def requested_seed(shoot: Document) -> RequestedSeed:
    """Read the annotation of a Shoot; the shoot's uid, if it has one yet, becomes the owner's."""
    annotation = annotation_of(shoot)
    if annotation is None:
        return RequestedSeed(None)
    if namespace_of(shoot) != GARDEN_NAMESPACE:
        return RequestedSeed(
            None, (f"{FIELD} is ignored: only shoots in the namespace {GARDEN_NAMESPACE} become seeds",)
        )
    flags, settings = _read(annotation)
    if _ON not in flags:
        if _OFF in flags or not annotation.strip():
            return RequestedSeed(None)
        return RequestedSeed(None, (f"{FIELD} is ignored: it must begin with true to have an effect",))
    warnings = tuple(_warnings(flags, settings))
    return RequestedSeed(_managed_seed(shoot, flags, settings), warnings)


def annotation_of(shoot: Document) -> str | None:
    """The annotation as it is written; None when there is none."""
    value = section(shoot, "metadata", "annotations").get(USE_AS_SEED)
    return value if isinstance(value, str) else None


def follows_annotation(managed_seed: Document, shoot: Document) -> bool:
    """True when a ManagedSeed was made from this shoot's annotation, so that it is changed and deleted with it."""
    metadata = section(managed_seed, "metadata")
    if section(metadata, "annotations").get(MADE_FROM) != MADE_FROM_ANNOTATION:
        return False
    uid = section(shoot, "metadata").get("uid")
    return any(owner.get("uid") == uid for owner in mappings(metadata.get("ownerReferences")))


def is_made_from_annotation(managed_seed: Document) -> bool:
    """True when a ManagedSeed was made from the annotation of any shoot."""
    return section(managed_seed, "metadata", "annotations").get(MADE_FROM) == MADE_FROM_ANNOTATION


def _read(annotation: str) -> tuple[Sequence[str], Mapping[str, str]]:
    flags: list[str] = []
    settings: dict[str, str] = {}
    for fragment in annotation.split(","):
        name, equals, value = fragment.strip().partition("=")
        if equals:
            settings[name.strip()] = value.strip()
        elif name:
            flags.append(name)
    return flags, settings


def _warnings(flags: Sequence[str], settings: Mapping[str, str]) -> Iterator[str]:
    for flag in flags:
        if flag not in _FLAGS and flag not in _WAYS and flag not in (_ON, _OFF):
            yield f"{FIELD}: {shown(flag)} is ignored, it is not known here"
    if _OFF in flags:
        yield f"{FIELD}: false is ignored beside true: leave one of them out"
    for one, other in (("protected", "unprotected"), ("visible", "invisible")):
        if one in flags and other in flags:
            yield f"{FIELD}: {one} is ignored beside {other}: leave one of them out"
    for name in settings:
        if name.startswith(_WITHOUT_EFFECT):
            yield f"{FIELD}: {shown(name)} is ignored: set shoot.gardener.cloud/managed-seed-api-server for it"
        elif not _is_supported(name):
            yield f"{FIELD}: {shown(name)} is ignored, it is not known here"


def _is_supported(setting: str) -> bool:
    if setting in _SETTINGS or setting == "blockCIDRs":
        return True
    return any(_below({setting: ""}, prefix) for prefix in (*_PREFIXES, *_RESOURCES, _BALANCER, _FEATURE))


def _managed_seed(shoot: Document, flags: Sequence[str], settings: Mapping[str, str]) -> Document:
    metadata = section(shoot, "metadata")
    name = str(metadata.get("name") or "")
    template: Document = {"spec": _seed_spec(name, flags, settings)}
    if labels := _own_labels(shoot):
        template["metadata"] = {"labels": labels}
    spec: Document = {"shoot": {"name": name}}
    if "no-gardenlet" in flags:
        spec["seedTemplate"] = template
    else:
        spec["gardenlet"] = _gardenlet(template, flags, settings)
    return {
        "apiVersion": f"{SEED_MANAGEMENT}/v1alpha1",
        "kind": "ManagedSeed",
        "metadata": {
            "name": name,
            "namespace": metadata.get("namespace"),
            "annotations": {MADE_FROM: MADE_FROM_ANNOTATION},
            "ownerReferences": [controller_reference(shoot)],
        },
        "spec": spec,
    }


def _gardenlet(template: Document, flags: Sequence[str], settings: Mapping[str, str]) -> Document:
    resources: dict[str, dict[str, str]] = {"capacity": {"shoots": DEFAULT_SHOOTS}}
    for name, value in settings.items():
        for prefix, part in _RESOURCES.items():
            if name.startswith(prefix):
                resources.setdefault(part, {})[name.removeprefix(prefix)] = value
    config: Document = {
        "apiVersion": GARDENLET_API_VERSION,
        "kind": GARDENLET_KIND,
        "resources": resources,
        "seedConfig": template,
    }
    if gates := {name.removeprefix(_FEATURE): _is_true(value) for name, value in _below(settings, _FEATURE)}:
        config["featureGates"] = gates
    by_account = "use-serviceaccount-bootstrapping" in flags
    bootstrap = "ServiceAccount" if by_account else "BootstrapToken"
    return {"bootstrap": bootstrap, "mergeWithParent": True, "config": config}


def _seed_spec(name: str, flags: Sequence[str], settings: Mapping[str, str]) -> Document:
    spec: Document = {"backup": {}, "settings": {"scheduling": {"visible": True}}}
    for path, value in (*_flagged(flags), *_set(settings)):
        spec = replaced(spec, path, value)
    if "no-gardenlet" in flags or "with-secret-ref" in flags:
        spec["secretRef"] = {"name": f"seed-{name}", "namespace": GARDEN_NAMESPACE}
    if settings.get("backup.provider") == _NO_BACKUP:
        del spec["backup"]
    return spec


def _flagged(flags: Sequence[str]) -> Iterator[tuple[_Path, Any]]:
    """Values of the flags, in the order in which the later one counts: unprotected and invisible win."""
    for flag, values in _FLAGS.items():
        if flag in flags and not (flag == "protected" and "unprotected" in flags):
            yield from values


def _set(settings: Mapping[str, str]) -> Iterator[tuple[_Path, Any]]:
    """Values of the settings."""
    for name, value in settings.items():
        if path := _SETTINGS.get(name):
            yield path, value
        elif name == "blockCIDRs":
            yield ("networks", "blockCIDRs"), value.split(";")
    for prefix, path in _PREFIXES.items():
        for name, value in _below(settings, prefix):
            yield (*path, *(part for part in name.removeprefix(prefix).split(".") if part)), _typed(value)
    for name, value in _below(settings, _BALANCER):
        yield ("settings", "loadBalancerServices", "annotations", name.removeprefix(_BALANCER)), value


def _below(settings: Mapping[str, str], prefix: str) -> Sequence[tuple[str, str]]:
    return [
        (name, value)
        for name, value in settings.items()
        if name.startswith(prefix) and name != prefix and name.count(".") <= _DEEPEST
    ]


def _own_labels(shoot: Document) -> Document:
    """The labels that the shoot's owner gave it: those of the system change with its status and its seed."""
    labels = section(shoot, "metadata", "labels")
    return {
        name: value
        for name, value in labels.items()
        if name != STATUS_LABEL and not str(name).startswith(SEED_LABEL_PREFIX)
    }


def _typed(value: str) -> Any:
    """A value as JSON would have it: text in quotes, a truth value, a number, else text."""
    if len(value) > 1 and value.startswith('"') and value.endswith('"'):
        return value[1:-1]
    if value.lower() in ("true", "false"):
        return _is_true(value)
    try:
        return int(value)
    except ValueError:
        pass
    try:
        number = float(value)
    except ValueError:
        return value
    return number if number - number == 0 else value


def _is_true(value: str) -> bool:
    return value.lower() in ("true", "t", "1")
