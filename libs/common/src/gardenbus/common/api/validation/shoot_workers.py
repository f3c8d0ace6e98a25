"""Rules of worker pools that no seed goes by.

Source: `ValidateWorker` in Gardener's `pkg/api/core/validation/shoot.go`. Names may be longer than
there, where they become parts of names of machines.
"""

import re

from gardenbus.common.api.shown_values import shown
from gardenbus.common.api.validation.field_cursor import FieldCursor, unique
from gardenbus.common.api.validation.metadata import check_labels, label_problem, qualified_name_problem
from gardenbus.common.api.validation.shoot_components import check_autoscaler, check_kubelet

UPDATE_STRATEGIES = ("AutoRollingUpdate", "AutoInPlaceUpdate", "ManualInPlaceUpdate")
TAINT_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")

_PERCENT = re.compile(r"[0-9]+%")


def check_workers(provider: FieldCursor) -> None:
    """Note every problem of the worker pools of a shoot."""
    workers = provider.entries("workers")
    for worker in workers:
        if (image := worker.section("machine").section("image")) and image.content:
            image.text("name", required=True)
        worker.choice("updateStrategy", UPDATE_STRATEGIES)
        _check_update(worker)
        _check_volumes(worker)
        check_labels(worker, "labels")
        for key in worker.text_map("annotations"):
            if problem := qualified_name_problem(key):
                worker.errors.add_error(f"{worker.at('annotations')}[{key[:80]}]", problem)
        _check_taints(worker)
        check_autoscaler(worker.section("clusterAutoscaler"))
        check_kubelet(worker.section("kubernetes").section("kubelet"))
    if workers and not any(map(_takes_system_components, workers)):
        provider.add_error("workers", "one pool with a maximum above 0 must take system components: allow them there")


def _takes_system_components(worker: FieldCursor) -> bool:
    return worker.content.get("maximum") != 0 and worker.section("systemComponents").content.get("allow") is not False


def _check_update(worker: FieldCursor) -> None:
    surge, unavailable = (_limit(worker, field) for field in ("maxSurge", "maxUnavailable"))
    if unavailable is not None and unavailable > 100 and isinstance(worker.content["maxUnavailable"], str):  # noqa: PLR2004  percent
        worker.add_error("maxUnavailable", f"must be at most 100%, not {worker.content['maxUnavailable']}")
    if surge == 0 and not unavailable:
        worker.add_error("maxUnavailable", "must not be 0 where maxSurge is 0: no machine could be replaced")
    if surge and worker.content.get("updateStrategy") == "ManualInPlaceUpdate":
        worker.add_error("maxSurge", "must be 0 where updateStrategy is ManualInPlaceUpdate")


def _limit(worker: FieldCursor, field: str) -> int | None:
    """A whole number from 0, or that of a percentage; None where there is none."""
    value = worker.content.get(field)
    if not isinstance(value, str):
        return worker.integer(field, least=0)
    if not _PERCENT.fullmatch(value) or len(value) > 10:  # noqa: PLR2004  digits enough
        worker.add_error(field, f"must be a number as 2, or percent as 25%, not {shown(value)}")
        return None
    return int(value[:-1])


def _check_volumes(worker: FieldCursor) -> None:
    data_volumes = worker.entries("dataVolumes")
    for volume in data_volumes:
        volume.text("name", required=True, rule=label_problem)
    unique(data_volumes, "name")
    if data_volumes and not worker.section("volume"):
        worker.add_error("volume", "is needed where there are dataVolumes")
    for volume in (worker.section("volume"), *data_volumes):
        volume.text("size", required=True, rule=_size_problem)
    name = worker.text("kubeletDataVolumeName")
    if name is not None and name not in [volume.content.get("name") for volume in data_volumes]:
        worker.add_error("kubeletDataVolumeName", f"{shown(name)} is none of the dataVolumes")


def _size_problem(size: str) -> str:
    return "" if re.fullmatch(r"[0-9]+Gi", size) else f"must be whole gibibytes, as 50Gi, not {size!r}"


def _check_taints(worker: FieldCursor) -> None:
    seen: set[tuple[str, str]] = set()
    for taint in worker.entries("taints"):
        key = taint.text("key", required=True, rule=qualified_name_problem)
        effect = taint.choice("effect", TAINT_EFFECTS, required=True)
        if key is None or effect is None:
            continue
        if (key, effect) in seen:
            taint.add_error("", f"{key} with the effect {effect} is in the list already: keep one")
        seen.add((key, effect))
