"""Checks of the objects of a ManagedResource: the first that is not healthy, and the first that is being rolled out."""

from collections.abc import Sequence
from urllib.parse import quote

from gardenbus.common.api.document import Document, section
from gardenbus.gardenlet.domain.managed_resources import conditions as found
from gardenbus.gardenlet.domain.managed_resources.health import (
    OLD_PODS,
    has_exact_pods,
    health_problem,
    is_rolled_out_by_pods,
    progress_problem,
)
from gardenbus.gardenlet.domain.managed_resources.names import SKIP_HEALTH_CHECK, annotations_of
from gardenbus.gardenlet.domain.managed_resources.references import ResourceReference
from gardenbus.gardenlet.resource_manager.target import ResourceCluster


async def check_objects(target: ResourceCluster, references: Sequence[ResourceReference]) -> list[found.Finding]:
    """Findings of health and of progress, in this order. Raises GardenbusError when the cluster is away."""
    health: found.Finding | None = None
    progress: found.Finding | None = None
    for reference in references:
        if health is not None and progress is not None:
            break
        served = await target.served(reference)
        live = await target.live(served) if served is not None else None
        if live is None:
            no_kind = f'no matches for kind "{reference.kind}" in version "{reference.api_version}"'
            health = health or found.missing(reference, "" if served is not None else no_kind)
            continue
        if health is None and (problem := health_problem(reference.group, live)) is not None:
            health = found.unhealthy(reference, problem)
        if progress is None and (problem := await _progress_problem(target, reference, live)) is not None:
            progress = found.progressing(reference, problem)
    return [health or found.healthy(), progress or found.rolled_out()]


async def _progress_problem(target: ResourceCluster, reference: ResourceReference, live: Document) -> str | None:
    problem = progress_problem(reference.group, live)
    is_skipped = annotations_of(live).get(SKIP_HEALTH_CHECK) == "true"
    if problem is not None or is_skipped or not is_rolled_out_by_pods(reference.group, live):
        return problem
    labels = section(live, "spec", "selector", "matchLabels")
    selector = ",".join(f"{name}={value}" for name, value in sorted(labels.items()))
    path = f"/api/v1/namespaces/{quote(reference.namespace, safe='')}/pods"
    pods = await (await target.client()).items(path, labelSelector=selector)
    return None if has_exact_pods(live, pods) else OLD_PODS
