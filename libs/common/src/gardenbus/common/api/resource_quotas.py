"""ResourceQuotas: which kinds they limit in their namespace, and to how many objects.

Counted is what is stored: `count/<plural>.<group>` of any registered kind, `count/<plural>` of Kubernetes' core group,
and the plurals alone that Kubernetes took first. Nothing here counts what pods request, and a quota with scopes is for
pods. Source: Kubernetes' `pkg/quota/v1/evaluator/core/registry.go` and `pkg/quota/v1/generic/evaluator.go`.
"""

from collections.abc import Iterator
from functools import cache
from typing import Any

from gardenbus.common.api.document import Document, encode, section
from gardenbus.common.api.kinds import KINDS
from gardenbus.common.api.quantities import parse_quantity

KIND = "resourcequota"
COUNT = "count/"

_BY_PLURAL_ALONE = frozenset(
    {"configmaps", "persistentvolumeclaims", "replicationcontrollers", "resourcequotas", "secrets", "services"}
)
"""Core resources that Kubernetes counts under their own name, too."""


@cache
def _kinds() -> dict[str, str]:
    return {spec.qualified_plural: singular for singular, spec in KINDS.items() if spec.namespaced}


def counted_kind(resource: str) -> str:
    """The kind (as in keys) that a resource of a quota counts; "" for one that nothing here counts."""
    if resource.startswith(COUNT):
        return _kinds().get(resource.removeprefix(COUNT), "")
    return _kinds()[resource] if resource in _BY_PLURAL_ALONE else ""


def count_resource(kind: str, api_version: str) -> str:
    """The resource that counts objects of a kind: `count/shoots.core.gardener.cloud`."""
    return COUNT + (KINDS[kind].qualified_plural if kind in KINDS else f"{kind}.{api_version.rpartition('/')[0]}")


def quota_lines(spec: Document) -> tuple[str, ...]:
    """Index of a ResourceQuota: spec.hard as JSON, then `<kind> <most> <resource as JSON>` for what is counted."""
    hard = section(spec, "hard")
    if not hard:
        return ()
    lines = () if spec.get("scopes") or spec.get("scopeSelector") else _limits(hard)
    return (encode(hard).decode(), *lines)


def _limits(hard: Document) -> Iterator[str]:
    for resource, value in hard.items():
        kind, most = counted_kind(resource), _whole(value)
        if kind and most >= 0:
            yield f"{kind} {most} {encode(resource).decode()}"


def _whole(value: Any) -> int:
    """The whole number below a quantity; -1 for what is none."""
    if not isinstance(value, str | int | float):
        return -1
    try:
        return int(parse_quantity(value))
    except ValueError:
        return -1
