"""Updates that the maintenance of a shoot makes: versions of Kubernetes, and of machine images.

A version is updated where the shoot has automatic updates, and in any case when it has expired or is not listed any
more (a forced update). Lists that a profile leaves empty say nothing.
Source: Gardener's `pkg/controllermanager/controller/shoot/maintenance`.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import mappings
from gardenbus.common.api.garden.expirable_versions import (
    consecutive_minor,
    is_expired,
    newest_above,
    next_higher,
    numbers_of,
)
from gardenbus.common.api.garden.pool_constraints import may_become

KUBERNETES, MACHINE_IMAGE = "Kubernetes", "Machine image"
CONTROL_PLANE = "Control Plane"

_SAME_NUMBERS = {"patch": 2, "minor": 1, "major": 0}
"""Numbers of an image's version that an update keeps, by its strategy, where its minor has no newer patch."""

_DEFAULT_STRATEGY = "major"


class VersionUpdate(NamedTuple):
    """An update, or one that could not be made.

    `version`: the new one, None where no version was found. `subject`: `Control Plane`, or the worker pool.
    """

    component: str
    subject: str
    before: str
    version: str | None
    reason: str
    image: str = ""

    @property
    def is_successful(self) -> bool:
        """True when a version was found."""
        return self.version is not None

    @property
    def description(self) -> str:
        """Description of the update, or of the reason why it could not be made."""
        what = f'machine image "{self.image}"' if self.image else "Kubernetes version"
        if self.is_successful:
            return f'Updated {what} from "{self.before}" to "{self.version}"'
        return f'found no version in the CloudProfile to update {what} to from "{self.before}"'


class MaintainedSpec(NamedTuple):
    """A shoot's spec after its updates, and these."""

    spec: Document
    updates: tuple[VersionUpdate, ...]


class _Need(NamedTuple):
    reason: str
    is_forced: bool


def maintained_spec(spec: Document, offered: Document, now: datetime) -> MaintainedSpec:
    """The spec of a shoot with every update that a profile's (merged) spec requires; itself where there is none."""
    listed = section(offered, "kubernetes").get("versions")
    kubernetes = section(spec, "kubernetes")
    update = _kubernetes_update(kubernetes.get("version"), spec, listed, now)
    version = update.version if update is not None and update.version else kubernetes.get("version")
    updates = [] if update is None else [update]
    given, pools = mappings(section(spec, "provider").get("workers")), list[Document]()
    for pool in given:
        new, of_pool = _maintained_pool(pool, spec, offered, str(version or ""), now)
        updates += of_pool
        pools.append(new)
    if not any(update.is_successful for update in updates):
        return MaintainedSpec(spec, tuple(updates))
    maintained = {**spec}
    if version != kubernetes.get("version"):
        maintained["kubernetes"] = {**kubernetes, "version": version}
    if pools != given:
        maintained["provider"] = {**section(spec, "provider"), "workers": pools}
    return MaintainedSpec(maintained, tuple(updates))


def _maintained_pool(
    pool: Document, spec: Document, offered: Document, control_plane: str, now: datetime
) -> tuple[Document, Sequence[VersionUpdate]]:
    subject, updates = f'Worker pool "{pool.get("name")}"', list[VersionUpdate]()
    own = section(pool, "kubernetes").get("version")
    if own is not None:
        listed = section(offered, "kubernetes").get("versions")
        update = _kubernetes_update(own, spec, listed, now, subject=subject)
        if control_plane and update is not None and numbers_of(update.version) > numbers_of(control_plane):
            update = update._replace(version=control_plane) if own != control_plane else None
        if update is not None:
            updates.append(update)
            if update.version:
                pool = {**pool, "kubernetes": {**section(pool, "kubernetes"), "version": update.version}}
    kubelet = str(section(pool, "kubernetes").get("version") or control_plane)
    image = _image_update(pool, spec, offered, kubelet, now)
    if image is not None:
        updates.append(image)
        if image.version:
            machine = section(pool, "machine")
            new_image = {**section(machine, "image"), "version": image.version}
            pool = {**pool, "machine": {**machine, "image": new_image}}
    return pool, updates


def _kubernetes_update(
    version: Any, spec: Document, listed: Any, now: datetime, *, subject: str = CONTROL_PLANE
) -> VersionUpdate | None:
    need = _need(version, listed, now, is_automatic=_is_automatic(spec, "kubernetesVersion"), component=KUBERNETES)
    if need is None or not mappings(listed):
        return None
    found = newest_above(listed, version, now, same=2)
    if found is None and need.is_forced:
        found = consecutive_minor(listed, version, now)
    if found is None and not need.is_forced:
        return None
    return VersionUpdate(KUBERNETES, subject, version, found, need.reason)


def _image_update(
    pool: Document, spec: Document, offered: Document, kubelet: str, now: datetime
) -> VersionUpdate | None:
    machine = section(pool, "machine")
    image = section(machine, "image")
    name, version = image.get("name"), image.get("version")
    entry = next((one for one in mappings(offered.get("machineImages")) if one.get("name") == name), None)
    if entry is None or not isinstance(name, str) or not mappings(entry.get("versions")):
        return None
    strategy = str(entry.get("updateStrategy") or _DEFAULT_STRATEGY)
    listed = [one for one in mappings(entry.get("versions")) if may_become(one, pool, offered, kubelet)]
    need = _need(
        version,
        listed,
        now,
        is_automatic=_is_automatic(spec, "machineImageVersion"),
        component=MACHINE_IMAGE,
        strategy=strategy,
    )
    if need is None or not isinstance(version, str):
        return None
    same = _SAME_NUMBERS.get(strategy, 0)
    found = newest_above(listed, version, now, same=2) or newest_above(listed, version, now, same=same)
    if found is None and need.is_forced and same:
        found = next_higher(listed, version, now, position=same - 1)
    if found is None and not need.is_forced:
        return None
    return VersionUpdate(MACHINE_IMAGE, f'Worker pool "{pool.get("name")}"', version, found, need.reason, name)


def _need(
    version: Any, listed: Any, now: datetime, *, is_automatic: bool, component: str, strategy: str = ""
) -> _Need | None:
    """The need to update a version; None where there is none."""
    versions = mappings(listed)
    if not isinstance(version, str) or not numbers_of(version):
        return None
    by = f" (image update strategy: {strategy})" if strategy else ""
    current = next((one for one in versions if one.get("version") == version), None)
    if current is None:
        return _Need("Version does not exist in CloudProfile", is_forced=True)
    if is_expired(current.get("expirationDate"), now):
        return _Need(f"{component} version expired - force update required{by}", is_forced=True)
    if is_automatic:
        return _Need(f"Automatic update of the {component} version is configured{by}", is_forced=False)
    return None


def _is_automatic(spec: Document, field: str) -> bool:
    """True unless automatic updates are switched off."""
    return section(spec, "maintenance", "autoUpdate").get(field) is not False
