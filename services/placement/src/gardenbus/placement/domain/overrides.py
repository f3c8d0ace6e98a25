"""Overrides of a placement on a cluster: which apply, and what they make of a manifest.

1. ClusterResourceOverrides act first, by name; then ResourceOverrides, by namespace and name, so that they prevail.
2. The rules of each act in their order, those whose selector matches the cluster.
3. `Delete` takes the object away, whatever follows.

Source: KubeFleet's `pkg/utils/overrider` and `pkg/controllers/workgenerator/override.go`.
"""

import copy
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, cast

from jsonpatch import JsonPatch, JsonPatchException
from jsonpointer import JsonPointerException

from gardenbus.common.api.document import Document, section
from gardenbus.common.api.fleet.member_clusters import MemberCluster
from gardenbus.common.api.fleet.overrides import (
    CLUSTER_LABEL_VARIABLE,
    CLUSTER_NAME_VARIABLE,
    DELETE,
    OPERATIONS,
    AppliedOverrides,
    JsonPatchOverride,
    NamespacedName,
    OverrideRule,
    OverrideSnapshot,
    ResourceId,
    overridden_ids,
    placement_of,
    resource_ids,
    variables_in,
)
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.api.selectors import parse_selector


class OverrideFailed(ValueError):
    """A rule that cannot be carried out on an object; the message says which, and why."""


class TargetCluster(NamedTuple):
    """The parts of a cluster that overrides read."""

    name: str
    labels: Mapping[str, str]


def target_of(cluster: MemberCluster) -> TargetCluster:
    """Return what overrides read of a cluster."""
    return TargetCluster(cluster.name, cluster.metadata.labels)


def relevant(
    snapshots: Iterable[OverrideSnapshot], placement: ObjectKey, resources: Collection[ResourceId]
) -> list[OverrideSnapshot]:
    """Return the overrides that are about a placement and some of its resources (all their `resource_ids`)."""
    return [
        each
        for each in snapshots
        if is_for(each, placement) and any(named in resources for named in overridden_ids(each))
    ]


def is_for(snapshot: OverrideSnapshot, placement: ObjectKey) -> bool:
    """Report whether an override is for a placement: it names that one, or none."""
    only = placement_of(snapshot.metadata.namespace, snapshot.spec.override_spec.placement)
    return only is None or only == placement


def applicable(snapshots: Iterable[OverrideSnapshot], cluster: TargetCluster) -> AppliedOverrides:
    """Return those of the overrides with a rule for a cluster. Raises OverrideFailed for an invalid selector."""
    chosen = [each for each in snapshots if any(_matches(each, rule, cluster) for rule in _rules(each))]
    return AppliedOverrides(
        tuple(sorted(each.name for each in chosen if not each.is_namespaced)),
        tuple(sorted(NamespacedName(each.metadata.namespace, each.name) for each in chosen if each.is_namespaced)),
    )


def overridden(
    resources: Sequence[Document], snapshots: Sequence[OverrideSnapshot], cluster: TargetCluster
) -> list[Document]:
    """Return manifests as a cluster shall have them; `snapshots` are those of its binding, in their order.

    Raises OverrideFailed.
    """
    if not snapshots:
        return list(resources)
    acting: dict[ResourceId, list[OverrideSnapshot]] = {}
    for snapshot in snapshots:
        for named in overridden_ids(snapshot):
            acting.setdefault(named, []).append(snapshot)
    found = (_changed(each, acting, cluster) for each in resources)
    return [each for each in found if each is not None]


def with_variables(value: Any, cluster: TargetCluster) -> Any:
    """Return a value with the variables in its texts replaced. Raises OverrideFailed for a label without value."""
    if isinstance(value, str):
        return _replaced(value, cluster)
    if isinstance(value, list):
        return [with_variables(each, cluster) for each in cast("list[Any]", value)]
    if isinstance(value, dict):
        members = cast("Document", value).items()
        return {_replaced(name, cluster): with_variables(each, cluster) for name, each in members}
    return value


def _changed(
    resource: Document, acting: Mapping[ResourceId, Sequence[OverrideSnapshot]], cluster: TargetCluster
) -> Document | None:
    """Return one manifest after all overrides; None where one takes it away."""
    present = resource
    for named in resource_ids(resource):
        for snapshot in acting.get(named, ()):
            for rule in _rules(snapshot):
                if not _matches(snapshot, rule, cluster):
                    continue
                if rule.override_type == DELETE:
                    return None
                present = _patched(present, snapshot, rule, cluster)
    return present


def _patched(resource: Document, snapshot: OverrideSnapshot, rule: OverrideRule, cluster: TargetCluster) -> Document:
    result: Any = copy.deepcopy(resource)
    for operation in rule.json_patch_overrides:
        try:
            written = _operation(operation, cluster)
        except ValueError as error:
            raise OverrideFailed(f"{_named(snapshot)}: {_place(resource, operation)}: {error}") from error
        try:
            result = JsonPatch([written]).apply(result, in_place=True)
        except (JsonPatchException, JsonPointerException, KeyError, TypeError, ValueError, IndexError) as error:
            message = "there is nothing to add it to" if operation.op == "add" else "there is no such field"
            raise OverrideFailed(f"{_named(snapshot)}: {_place(resource, operation)}: {message}") from error
    if not isinstance(result, dict) or resource_ids(cast("Document", result)) != resource_ids(resource):
        raise OverrideFailed(f"{_named(snapshot)}: {_title(resource)}: would be another object afterwards")
    return cast("Document", result)


def _operation(override: JsonPatchOverride, cluster: TargetCluster) -> Document:
    if override.op not in OPERATIONS:
        raise OverrideFailed(f"op must be one of {', '.join(OPERATIONS)}")
    operation: Document = {"op": override.op, "path": override.path}
    return operation if override.op == "remove" else {**operation, "value": with_variables(override.value, cluster)}


def _replaced(text: str, cluster: TargetCluster) -> str:
    replaced = text.replace(CLUSTER_NAME_VARIABLE, cluster.name)
    for label in variables_in(replaced):
        if label not in cluster.labels:
            raise OverrideFailed(f"cluster {cluster.name} has no label {label}")
        replaced = replaced.replace(f"{CLUSTER_LABEL_VARIABLE}{label}}}", cluster.labels[label])
    return replaced


def _rules(snapshot: OverrideSnapshot) -> Sequence[OverrideRule]:
    return snapshot.spec.override_spec.policy.override_rules


def _matches(snapshot: OverrideSnapshot, rule: OverrideRule, cluster: TargetCluster) -> bool:
    """Report whether a rule is for a cluster: without a selector for none, with an empty one for all."""
    if rule.cluster_selector is None:
        return False
    terms = rule.cluster_selector.cluster_selector_terms
    try:
        return not terms or any(parse_selector(term.label_selector or {}).matches(cluster.labels) for term in terms)
    except ValueError as error:
        raise OverrideFailed(f"{_named(snapshot)}: clusterSelector: {error}") from error


def _named(snapshot: OverrideSnapshot) -> str:
    namespace = snapshot.metadata.namespace
    return f"ResourceOverride {namespace}/{snapshot.name}" if namespace else f"ClusterResourceOverride {snapshot.name}"


def _place(resource: Document, operation: JsonPatchOverride) -> str:
    return f"{_title(resource)}: {operation.op} {operation.path}"


def _title(resource: Document) -> str:
    metadata = section(resource, "metadata")
    namespace = f"{metadata['namespace']}/" if metadata.get("namespace") else ""
    return f"{resource.get('kind')} {namespace}{metadata.get('name')}"
