"""Conditions of the ControllerInstallations of a seed, and the extensions that a shoot waits for.

Nothing here installs a controller: whoever runs one renews the Lease `gardener-extension-heartbeat` of its namespace.

| deployment | heartbeat | Valid | Installed | Healthy | Progressing |
|---|---|---|---|---|---|
| any | renewed | True | True | True | False |
| any | outdated | True | True | False | False |
| without helm | none | True | False | False | True |
| helm | none | False | False | False | True |
| registration gone | | False | as by the heartbeat | | |

Source: Gardener's `pkg/gardenlet/controller/controllerinstallation`, and `RequiredExtensionsReady`.
"""

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime, timedelta
from typing import NamedTuple

from gardenbus.common.api.conditions import FALSE, TRUE, build_condition, condition_status, conditions_of, get_or_init
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import name_of
from gardenbus.common.api.garden.domains import default_domains, internal_domain
from gardenbus.common.api.garden.extensions import (
    EXTENSION_NAMESPACE_PREFIX,
    HEARTBEAT_NAME,
    ClusterType,
    KindType,
    automatic_by_cluster,
    resources_of,
    shoot_needs,
    wanted_by_shoot,
)
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.ports.clock import EARLIEST, parse_timestamp, timestamp

STALE_AFTER = timedelta(minutes=5)
"""Age of a heartbeat from which on its controller is not healthy: Gardener's staleExtensionHealthChecks."""

ConditionFinding = tuple[str, str, str]
"""Status, reason and message of a condition."""

_VALID: ConditionFinding = (TRUE, "RegistrationValid", "No chart is rendered: the controller is installed by others.")
_INSTALLED: ConditionFinding = (
    TRUE,
    "InstallationSuccessful",
    "The controller was successfully installed in the seed cluster.",
)
_HEALTHY: ConditionFinding = (TRUE, "ControllerHealthy", "The controller running in the seed cluster is healthy.")
_ROLLED_OUT: ConditionFinding = (FALSE, "ControllerRolledOut", "The controller has been rolled out successfully.")


class InstallationFacts(NamedTuple):
    """Facts of one installation, besides itself."""

    registration: Document | None
    deployment: Document | None
    heartbeat: Document | None
    """The Lease that its controller renews."""


class SeedExtensions(NamedTuple):
    """Registrations, and the installations of this seed, as they were last read."""

    registrations: Sequence[Document] = ()
    installations: Sequence[Document] = ()


def heartbeat_key(installation: str) -> ObjectKey:
    """The Lease of the controller of an installation."""
    return ObjectKey("lease", f"{EXTENSION_NAMESPACE_PREFIX}{installation}", HEARTBEAT_NAME)


def newer_heartbeat(in_garden: Document | None, in_seed: Document | None) -> Document | None:
    """The Lease that was renewed last: an extension renews it in the API that it acts in."""
    found = [each for each in (in_garden, in_seed) if each is not None]
    return max(
        found, key=lambda each: parse_timestamp(section(each, "spec").get("renewTime")) or EARLIEST, default=None
    )


def installation_patch(
    installation: Document, facts: InstallationFacts, present: AbstractSet[KindType], *, now: datetime
) -> Document:
    """Status patch of the conditions that differ; {} when none does. `present`: extensions that are in use here."""
    findings = {**_findings(installation, facts, now), **_required(facts.registration, present)}
    old, changed = conditions_of(installation), list[Document]()
    for kind, (status, reason, message) in findings.items():
        before = get_or_init(old, kind, timestamp(now))
        new, _ = build_condition(before, now=timestamp(now), status=status, reason=reason, message=message)
        if new not in old:
            changed.append(new)
    return {"conditions": changed} if changed else {}


def missing_extensions(shoot_spec: Document, seed_spec: Document, extensions: SeedExtensions) -> str:
    """Gardener's error for extensions that a shoot needs and no ready installation offers; "" when all are ready."""
    wanted = needed_by_shoot(shoot_spec, seed_spec, automatic_by_cluster(extensions.registrations))
    by_name = {name_of(each): each for each in extensions.registrations}
    for installation in extensions.installations:
        if _is_ready(installation):
            registration = by_name.get(_registration_of(installation), {})
            wanted -= {(str(each.get("kind")), str(each.get("type"))) for each in resources_of(registration)}
    if not wanted:
        return ""
    listed = " ".join(f"{kind}/{type_}:{{}}" for kind, type_ in sorted(wanted))
    return f"extension controllers missing or unready: map[{listed}]"


def needed_by_shoot(
    shoot_spec: Document, seed_spec: Document, automatic: Mapping[ClusterType, frozenset[str]]
) -> set[KindType]:
    """The extensions that a shoot needs on this seed, and `automatic` ones. Domains are those of the Seed."""
    needs = shoot_needs(shoot_spec, default_domains(seed_spec, ()))
    return set(wanted_by_shoot(needs, seed_spec, automatic, internal_domain(seed_spec, ())))


def present_extensions(
    shoot_specs: Iterable[Document],
    seed_spec: Document,
    registrations: Sequence[Document],
    backups: AbstractSet[KindType] | None = frozenset(),
) -> frozenset[KindType]:
    """Kinds and types of which something is in the seed: of the shoots that it runs, and of its backup.

    `backups`: those of its BackupBucket and BackupEntries; None where they are not known.
    """
    found, automatic = set[KindType](), automatic_by_cluster(registrations)
    for spec in shoot_specs:
        found |= needed_by_shoot(spec, seed_spec, automatic)
    if backup := section(seed_spec, "backup").get("provider"):
        found.add(("BackupBucket", str(backup)))
        found |= {("BackupEntry", str(backup))} if backups is None else set()
    return frozenset(found | (backups or set()))


def deployment_of(installation: Document) -> str:
    """The ControllerDeployment of an installation; "" without one."""
    return str(section(installation, "spec", "deploymentRef").get("name") or "")


def registration_in(installation: Document, registrations: Iterable[Document]) -> Document | None:
    """The ControllerRegistration of an installation; None when it is gone."""
    name = _registration_of(installation)
    return next((each for each in registrations if name_of(each) == name), None)


def _registration_of(installation: Document) -> str:
    return str(section(installation, "spec", "registrationRef").get("name") or "")


def _is_ready(installation: Document) -> bool:
    conditions = conditions_of(installation)
    wanted = (("Installed", TRUE), ("Healthy", TRUE), ("Progressing", FALSE))
    return all(condition_status(conditions, kind) == status for kind, status in wanted)


def _findings(installation: Document, facts: InstallationFacts, now: datetime) -> Mapping[str, ConditionFinding]:
    where = heartbeat_key(name_of(installation))
    lease = f"Lease {where.namespace}/{where.name}"
    renewed_at = parse_timestamp(section(facts.heartbeat or {}, "spec").get("renewTime"))
    has_chart = facts.deployment is not None and "helm" in facts.deployment
    valid = _VALID
    if has_chart and renewed_at is None:
        text = f"chart rendering process failed: nothing here renders charts; whoever installs it renews the {lease}"
        valid = (FALSE, "ChartCannotBeRendered", text)
    if facts.registration is None:
        text = f"Referenced ControllerRegistration does not exist: {_registration_of(installation)}"
        valid = (FALSE, "RegistrationNotFound", text)
    if renewed_at is None:
        waits = f"The controller has no heartbeat yet: nothing has renewed the {lease}."
        return {
            "Valid": valid,
            "Installed": (FALSE, "InstallationPending", waits),
            "Healthy": (FALSE, "ControllerNotHealthy", waits),
            "Progressing": (TRUE, "ControllerNotRolledOut", waits),
        }
    is_alive = now - renewed_at <= STALE_AFTER
    text = f"The heartbeat of the controller is outdated: the {lease} was last renewed at {timestamp(renewed_at)}."
    healthy = _HEALTHY if is_alive else (FALSE, "ControllerNotHealthy", text)
    return {"Valid": valid, "Installed": _INSTALLED, "Healthy": healthy, "Progressing": _ROLLED_OUT}


def _required(registration: Document | None, present: AbstractSet[KindType]) -> Mapping[str, ConditionFinding]:
    if registration is None:
        return {}
    kinds = {(str(each.get("kind")), str(each.get("type"))) for each in resources_of(registration)}
    if found := sorted(kinds & present):
        listed = " ".join(f"{kind}/{type_}" for kind, type_ in found)
        message = f"extension objects still exist in the seed: [{listed}]"
        return {"Required": (TRUE, "ExtensionObjectsExist", message)}
    message = (
        "no extension objects exist in the seed having the kind/type combinations the controller is responsible for"
    )
    return {"Required": (FALSE, "NoExtensionObjects", message)}
