"""Rules of worker pools that no seed goes by.

Source: `ValidateWorker` in Gardener's `pkg/api/core/validation/shoot.go`. Names may be longer than
there, where they become parts of names of machines.
"""

import re
from collections.abc import Sequence

from gardenbus.apiserver.domain.validation.field_cursor import FieldCursor, unique
from gardenbus.apiserver.domain.validation.issuers import certificates_problem
from gardenbus.apiserver.domain.validation.limits import MOST_MACHINES
from gardenbus.apiserver.domain.validation.metadata import (
    check_labels,
    label_problem,
    label_value_problem,
    qualified_name_problem,
)
from gardenbus.apiserver.domain.validation.shared import check_annotation_keys
from gardenbus.apiserver.domain.validation.shoot_components import check_autoscaler, check_kubelet
from gardenbus.apiserver.domain.validation.value_rules import (
    ValueRules,
    check_values,
    lasting,
    of_section,
    one_of,
    whole,
)
from gardenbus.common.api.keys import RESERVED_TAINT
from gardenbus.common.api.shown_values import shown

IN_PLACE = ("AutoInPlaceUpdate", "ManualInPlaceUpdate")
UPDATE_STRATEGIES = ("AutoRollingUpdate", *IN_PLACE)
TAINT_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")

_PERCENT = re.compile(r"[0-9]+%")
_SYSCTL = re.compile(r"(?:(?:[a-zA-Z0-9-][a-zA-Z0-9_/-]*|\*)\.)*[a-zA-Z0-9_/-]*[a-zA-Z0-9]")
_RUNTIMES = ("containerRuntimes", "type")
_LONGEST_SYSCTL, _LONGEST_SYSCTL_PART = 4086, 255
"""Of a path below /proc/sys/, and of each name in it. Source: Linux' `limits.h`."""

_VALUES: ValueRules = {
    **dict.fromkeys(("minimum", "maximum"), whole(None, MOST_MACHINES)),
    "priority": whole(-1),
    "cri": of_section({"containerRuntimes": lambda cri, _: cri.named_entries(*_RUNTIMES)}),
    "clusterAutoscaler": lambda worker, field: check_autoscaler(worker.section(field)),
    "kubernetes": of_section({"kubelet": lambda kubernetes, field: check_kubelet(kubernetes.section(field))}),
    "sysctls": lambda worker, _: _check_sysctls(worker),
    "machine": of_section({"architecture": one_of("amd64", "arm64")}),
    "machineControllerManager": lambda worker, _: _check_machine_manager(worker),
}
_MACHINE_MANAGER: ValueRules = {
    **dict.fromkeys(("machineDrainTimeout", "machineHealthTimeout", "machineCreationTimeout"), lasting()),
    **dict.fromkeys(("inPlaceUpdateTimeout", "machinePreserveTimeout"), lasting()),
    **dict.fromkeys(("maxEvictRetries", "autoPreserveFailedMachineMax"), whole()),
}


def check_workers(provider: FieldCursor) -> None:
    """Note every problem of the worker pools of a shoot."""
    workers = provider.entries("workers")
    for worker in workers:
        worker.section("machine", required=True).text("type", required=True)
        if (image := worker.section("machine").section("image")) and image.content:
            image.text("name", required=True)
        if cri := worker.section("cri"):
            cri.choice("name", ("containerd",), required=True)
        worker.text("caBundle", filled=True, rule=certificates_problem)
        worker.choice("updateStrategy", UPDATE_STRATEGIES)
        _check_update(worker)
        _check_volumes(worker)
        check_labels(worker, "labels")
        check_annotation_keys(worker)
        _check_taints(worker)
        check_values(worker, _VALUES)
    _check_zones(workers)
    if workers and not any(map(_takes_system_components, workers)):
        provider.add_error("workers", "one pool with a maximum above 0 must take system components: allow them there")


def _check_zones(workers: Sequence[FieldCursor]) -> None:
    """Note the last pool of those in the same zones that take system components, if none has a node for each zone."""
    short: dict[frozenset[str], tuple[FieldCursor, int]] = {}
    enough: set[frozenset[str]] = set()
    for worker in filter(_takes_system_components, workers):
        zones = frozenset(zone for _, zone in worker.texts("zones"))
        most = worker.content.get("maximum")
        if isinstance(most, int) and most < len(zones):
            short[zones] = (worker, most)
        else:
            enough.add(zones)
    for zones, (worker, most) in short.items():
        if zones not in enough:
            worker.add_error(
                "maximum", f"must be {len(zones)} or more, not {most}: system components are spread over all zones"
            )


def _takes_system_components(worker: FieldCursor) -> bool:
    components = worker.section("systemComponents")
    return worker.content.get("maximum") != 0 and (not components or components.content.get("allow") is True)


def _check_update(worker: FieldCursor) -> None:
    surge, unavailable = (_limit(worker, field) for field in ("maxSurge", "maxUnavailable"))
    if unavailable is not None and unavailable > 100 and isinstance(worker.content["maxUnavailable"], str):  # noqa: PLR2004  percent
        worker.add_error("maxUnavailable", f"must be at most 100%, not {worker.content['maxUnavailable']}")
    if worker.content.get("updateStrategy") == "ManualInPlaceUpdate":
        for field in ("maxSurge", "maxUnavailable"):
            if worker.has(field):
                worker.add_error(field, "must be left out where updateStrategy is ManualInPlaceUpdate")
    elif surge == 0 and not unavailable:
        worker.add_error("maxUnavailable", "must not be 0 where maxSurge is 0: no machine could be replaced")


def _check_machine_manager(worker: FieldCursor) -> None:
    """Note settings of machines beyond their bounds, and those of updates in place where machines are replaced."""
    manager = worker.section("machineControllerManager")
    check_values(manager, _MACHINE_MANAGER)
    _check_preserved_machines(worker, manager)
    if worker.content.get("updateStrategy") in IN_PLACE:
        return
    if manager.has("inPlaceUpdateTimeout"):
        manager.add_error("inPlaceUpdateTimeout", f"is for the updateStrategy {' or '.join(IN_PLACE)} alone")
    if manager.content.get("disableHealthTimeout") is True:
        manager.add_error("disableHealthTimeout", f"is for the updateStrategy {' or '.join(IN_PLACE)} alone")


def _check_preserved_machines(worker: FieldCursor, manager: FieldCursor) -> None:
    """Note more failed machines to preserve than the pool has beside one for system components."""
    preserved, most = manager.content.get("autoPreserveFailedMachineMax"), worker.content.get("maximum") or 0
    if not isinstance(preserved, int) or not isinstance(most, int):
        return
    if preserved > (left := most - (1 if _takes_system_components(worker) and most else 0)):
        reason = "one machine is left for system components" if left < most else f"the pool has at most {most}"
        manager.add_error("autoPreserveFailedMachineMax", f"must be at most {left}, not {preserved}: {reason}")


def _check_sysctls(worker: FieldCursor) -> None:
    for key, value in worker.text_map("sysctls").items():
        is_long = len(key) > _LONGEST_SYSCTL or max(map(len, key.split("."))) > _LONGEST_SYSCTL_PART
        problem = "" if value else "is needed and is empty"
        if is_long or not _SYSCTL.fullmatch(key):
            problem = "is no key: write it as vm.max_map_count, each part with at most 255 characters"
        if problem:
            worker.errors.add_error(f"{worker.at('sysctls')}[{key[:80]}]", problem)


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
    worker.section("volume").text("name", filled=True, rule=label_problem)
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
        taint.text("value", rule=label_value_problem)
        if key == RESERVED_TAINT:
            taint.add_error("key", "is set and removed by the gardenlet alone")
        if key is None or effect is None:
            continue
        if (key, effect) in seen:
            taint.add_error("", f"{key} with the effect {effect} is in the list already: keep one")
        seen.add((key, effect))
