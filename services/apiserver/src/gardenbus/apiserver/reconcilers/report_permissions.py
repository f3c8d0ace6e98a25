"""What a gardenlet may report on, looked up: its own seed, its shoots, and the seeds that stand on them.

What a member cluster's agent may say stands in member_reports.py. Raises Forbidden for all else. Source: Gardener's
SeedRestriction admission and its seed authorizer.
"""

from gardenbus.apiserver.decide.metadata import key_of
from gardenbus.apiserver.reconcilers import report_rules
from gardenbus.apiserver.reconcilers.member_reports import check_member, cluster_of
from gardenbus.apiserver.reconcilers.preconditions import Condition
from gardenbus.apiserver.reconcilers.reads import Reads
from gardenbus.apiserver.reconcilers.report_messages import Report
from gardenbus.common.errors import Forbidden
from gardenbus.common.resources.document import Document, StoredObject, section
from gardenbus.common.resources.keys import GARDEN_NAMESPACE, ObjectKey


def own_seed(report: Report) -> ObjectKey:
    """The Seed of the gardenlet that reports."""
    return ObjectKey("seed", "", report.seed)


async def check_reporter(report: Report, document: Document, reads: Reads) -> None:
    """Raise Forbidden unless the object is one that this seed's gardenlet, or this cluster's agent, observes."""
    if cluster := cluster_of(report.seed):
        check_member(report, cluster)
        return
    match report.key.kind:
        case "shoot":
            report_rules.check_shoot(document, report.seed, str(report.key))
        case "seed" if report.key == own_seed(report):
            return
        case "managedseed" if await _hosts(document, report.seed, reads):
            return
        case _:
            raise Forbidden(f"{report.key} is not of seed {report.seed}")


async def admit_applied(report: Report, reads: Reads) -> Condition:
    """Raise Forbidden unless the gardenlet may apply this manifest: answers what must stay as it is meanwhile.

    That is its own Seed, the Seed of a ManagedSeed whose shoot is here, and the ShootStates of its shoots.
    """
    if key_of(report.body) != report.key:
        raise Forbidden(f"the manifest is not of {report.key}, which the subject names")
    if report.key.kind == "shootstate":
        return await _shoot_of_state(report, reads)
    managed_seed = await _managed_seed_of(report, reads)
    if report.key == own_seed(report):
        if managed_seed is not None and managed_seed.is_deleting and await reads.get(report.key) is None:
            raise Forbidden(f"{report.key} is not registered again: {managed_seed.key} is being deleted")
        return Condition(_managed_seed_key(report), managed_seed.version if managed_seed is not None else 0)
    refusal = f"the gardenlet of seed {report.seed} may not apply {report.key}"
    if report.key.kind != "seed" or managed_seed is None:
        raise Forbidden(f"{refusal}: only its own Seed, those of ManagedSeeds here, and ShootStates of shoots here")
    if managed_seed.is_deleting:
        raise Forbidden(f"{refusal}: {managed_seed.key} is being deleted")
    if not await _hosts(managed_seed.document(), report.seed, reads):
        raise Forbidden(f"{refusal}: the shoot of {managed_seed.key} is not here")
    return Condition(managed_seed.key, managed_seed.version)


async def admit_deleted(report: Report, reads: Reads) -> StoredObject:
    """Raise Forbidden unless it is the Seed of a ManagedSeed (the answer) that is deleting, its shoot standing here."""
    refusal = f"the gardenlet of seed {report.seed} may delete no {report.key}"
    managed_seed = await _managed_seed_of(report, reads) if report.key.kind == "seed" else None
    if managed_seed is None or not managed_seed.is_deleting:
        raise Forbidden(f"{refusal}: only the Seed of a ManagedSeed that is being deleted")
    if not await _hosts(managed_seed.document(), report.seed, reads):
        raise Forbidden(f"{refusal}: the shoot of the ManagedSeed is not here")
    return managed_seed


async def held_or_released(managed_seed: Document, reads: Reads) -> Document:
    """A ManagedSeed that was reported on, held by its gardenlet, or let go once nothing is left of its seed.

    Raises Forbidden when it shall go and its Seed is still there: a seed that nobody hosts would be left behind.
    """
    if not report_rules.is_taken_down(managed_seed):
        return report_rules.without_obeyed_operation(report_rules.held(managed_seed))
    name = str(section(managed_seed, "metadata").get("name"))
    seed = ObjectKey("seed", "", name)
    reads.forget(seed)
    if await reads.get(seed) is not None:
        raise Forbidden(f"managedseed {GARDEN_NAMESPACE}/{name} is not let go: {seed} is still there")
    return report_rules.released(managed_seed)


async def _managed_seed_of(report: Report, reads: Reads) -> StoredObject | None:
    """The ManagedSeed of the name of a seed."""
    return await reads.get(_managed_seed_key(report))


def _managed_seed_key(report: Report) -> ObjectKey:
    return ObjectKey("managedseed", GARDEN_NAMESPACE, report.key.name)


async def _hosts(managed_seed: Document, seed: str, reads: Reads) -> bool:
    """Whether the shoot of a ManagedSeed stands on a seed (where none has claimed it yet: whether it shall)."""
    name = str(section(managed_seed, "spec", "shoot").get("name") or "")
    shoot = await reads.get(ObjectKey("shoot", managed_seed["metadata"]["namespace"], name))
    return shoot is not None and report_rules.is_responsible(shoot.document(), seed)


async def _shoot_of_state(report: Report, reads: Reads) -> Condition:
    """The shoot of a ShootState, as it stands here: a source that has handed it over changes nothing any more."""
    shoot = await reads.get(ObjectKey("shoot", report.key.namespace, report.key.name))
    if shoot is None or not report_rules.is_responsible(shoot.document(), report.seed):
        raise Forbidden(f"{report.key}: its shoot is not on seed {report.seed}")
    return Condition(shoot.key, shoot.version)
