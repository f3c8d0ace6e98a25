"""Reconciler of the ControllerInstallations of the gardenlet's seed: their conditions, and what shoots wait for.

The Seed says by Gardener's finalizer whether anything is registered in the landscape: without it nothing is read.
"""

from collections.abc import Callable, Iterator, Mapping

import structlog

from gardenbus.common.api.conditions import conditions_of, get_condition, merge_conditions
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import is_deleting, key_of_document, name_of
from gardenbus.common.api.garden.extensions import EXTENSIONS_READY, REGISTRATION_FINALIZER, KindType
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import GardenbusError
from gardenbus.gardenlet.controllers.backups import BackupsReconciler
from gardenbus.gardenlet.domain.installations import (
    InstallationFacts,
    SeedExtensions,
    deployment_of,
    heartbeat_key,
    installation_patch,
    missing_extensions,
    newer_heartbeat,
    present_extensions,
    registration_in,
)
from gardenbus.gardenlet.domain.shoot_record import spec_of
from gardenbus.gardenlet.seed import ServedSeed

CARE_SECONDS = 30.0
"""Interval of the checks while anything is registered: Gardener's for installations."""

_log = structlog.stdlib.get_logger()


class InstallationsReconciler:
    """See the module. `backups`: buckets and entries in the seed are in use as well."""

    def __init__(self, seed: ServedSeed, backups: BackupsReconciler) -> None:
        self._seed = seed
        self._backups = backups
        self._checked_at = float("-inf")
        self._checked: object = None
        self._extensions: SeedExtensions | None = None

    @property
    def is_in_use(self) -> bool:
        """True while something is registered in the landscape, or installed here."""
        return REGISTRATION_FINALIZER in (section(self._seed.cache.seed or {}, "metadata").get("finalizers") or ())

    def missing(self, shoot_spec: Callable[[], Document]) -> str:
        """The extensions that a shoot has to wait for, in Gardener's words; "" when it need not wait."""
        if not self.is_in_use:
            return ""
        if self._extensions is None:
            return "extension controllers have not been checked yet"
        return missing_extensions(shoot_spec(), section(self._seed.cache.seed or {}, "spec"), self._extensions)

    async def reconcile(self) -> bool:
        """Check all installations when that is due; true where shoots that wait for one may go on.

        What cannot be read is checked in the next round.
        """
        if not self.is_in_use:
            self._extensions = self._checked = None
            return False
        now, trigger = self._seed.clock.monotonic(), self.trigger
        if now - self._checked_at < CARE_SECONDS and trigger == self._checked:
            return False
        try:
            extensions = await self._checked_ones(await self._read())
        except GardenbusError as error:
            _log.warning("installations.unknown", seed=self._seed.name, reason=error.message)
            return False
        self._checked_at, self._checked = now, trigger
        before, self._extensions = self._extensions, extensions
        return before != extensions

    def stand_by(self) -> None:
        """Drop all state: another holder reports from now on."""
        self._checked_at, self._extensions = float("-inf"), None

    @property
    def trigger(self) -> object:
        """The part of the Seed that controllermanager writes whenever installations change: they are checked then."""
        if not self.is_in_use:
            return None
        condition = get_condition(conditions_of(self._seed.cache.seed or {}), EXTENSIONS_READY) or {}
        return [condition.get(field) for field in ("status", "reason", "message")]

    async def _read(self) -> SeedExtensions:
        registrations = await self._seed.lookup.list("controllerregistration")
        selector = f"spec.seedRef.name={self._seed.name}"
        return SeedExtensions(registrations, await self._seed.lookup.list("controllerinstallation", selector))

    async def _checked_ones(self, extensions: SeedExtensions) -> SeedExtensions:
        """The installations with the conditions that are reported of them."""
        seed_spec = section(self._seed.cache.seed or {}, "spec")
        backups = self._backups.present if self._backups.is_in_use else frozenset[KindType]()
        present = present_extensions(self._shoot_specs(), seed_spec, extensions.registrations, backups)
        in_seed: Mapping[str, Document] = await self._seed.backend.heartbeats() if extensions.installations else {}
        checked = [await self._check(each, extensions, present, in_seed) for each in extensions.installations]
        return extensions._replace(installations=checked)

    async def _check(
        self,
        installation: Document,
        extensions: SeedExtensions,
        present: frozenset[KindType],
        in_seed: Mapping[str, Document],
    ) -> Document:
        if is_deleting(installation):
            return installation
        where = heartbeat_key(name_of(installation))
        deployment = deployment_of(installation)
        facts = InstallationFacts(
            registration_in(installation, extensions.registrations),
            await self._seed.lookup.get(ObjectKey("controllerdeployment", "", deployment)) if deployment else None,
            newer_heartbeat(await self._seed.lookup.get(where), in_seed.get(where.namespace)),
        )
        patch = installation_patch(installation, facts, present, now=self._seed.clock.now())
        if not patch:
            return installation
        uid = str(section(installation, "metadata").get("uid"))
        self._seed.reporter.enqueue_status(key_of_document(installation), uid, patch)
        conditions = merge_conditions(conditions_of(installation), *patch["conditions"])
        return {**installation, "status": {**section(installation, "status"), "conditions": conditions}}

    def _shoot_specs(self) -> Iterator[Document]:
        """The specs of the shoots that have something on this seed."""
        for shoot in self._seed.backend.shoots():
            record = self._seed.backend.load(shoot)
            if record is not None and record.resources and not record.is_torn_down and not record.has_left:
                yield spec_of(record)
