"""Authorization of gardenlets' reports: on their own seed, its shoots, and the seeds whose shoots it hosts.

For member agents see member_reports.py. Raises Forbidden. Source: Gardener's SeedRestriction admission and its seed
authorizer.
"""

from gardenbus.apiserver.domain import report_admission
from gardenbus.apiserver.domain.authorization.seed_graph import is_of_seed
from gardenbus.apiserver.domain.member_reports import check_member, cluster_of
from gardenbus.apiserver.domain.report_messages import Report
from gardenbus.apiserver.domain.validation.metadata import key_of
from gardenbus.apiserver.registry.preconditions import Precondition
from gardenbus.apiserver.registry.read_cache import ReadCache
from gardenbus.common.api.document import Document, StoredObject, section
from gardenbus.common.api.document_parts import FINALIZER, name_of, with_finalizer, without_finalizer
from gardenbus.common.api.garden.backup_references import GENERATED_PREFIX, bucket_name, is_generated, seed_name
from gardenbus.common.api.keys import GARDEN_NAMESPACE, ObjectKey
from gardenbus.common.api.owners import controller_of
from gardenbus.common.errors import Forbidden


def own_seed(report: Report) -> ObjectKey:
    """The Seed of the gardenlet that reports."""
    return ObjectKey("seed", "", report.seed)


async def authorize_report(report: Report, document: Document, reads: ReadCache) -> None:
    """Raise Forbidden unless the object is one that this seed's gardenlet, or this cluster's agent, observes."""
    if cluster := cluster_of(report.seed):
        check_member(report, cluster)
        return
    match report.key.kind:
        case "shoot":
            report_admission.check_shoot(document, report.seed, str(report.key))
        case "seed" if report.key == own_seed(report):
            return
        case "controllerinstallation" | "bastion" | "backupbucket" | "backupentry" if is_of_seed(
            report.key, document, report.seed
        ):
            return
        case "managedseed" if await _hosts(document, report.seed, reads):
            return
        case _:
            raise Forbidden(f"{report.key} is not of seed {report.seed}")


async def authorize_apply(report: Report, reads: ReadCache) -> Precondition:
    """Raise Forbidden unless the gardenlet may apply this manifest; returns the precondition of the write.

    It may apply its own Seed with its BackupBucket and the credentials that were generated for that, the Seed of a
    ManagedSeed whose shoot it hosts, and the ShootStates and BackupEntries of its shoots.
    """
    if key_of(report.body) != report.key:
        raise Forbidden(f"the manifest is not of {report.key}, which the subject names")
    match report.key.kind:
        case "shootstate":
            return await _shoot_of_state(report, reads)
        case "backupbucket":
            return await _seed_of_bucket(report, reads)
        case "backupentry":
            return await _shoot_of_entry(report, reads)
        case "secret" if is_generated(report.key):
            return await _bucket_of_secret(report, reads)
        case _:
            return await _seed_or_hosted(report, reads)


async def _seed_or_hosted(report: Report, reads: ReadCache) -> Precondition:
    managed_seed = await _managed_seed_of(report, reads)
    if report.key == own_seed(report):
        if managed_seed is not None and managed_seed.is_deleting and await reads.get(report.key) is None:
            raise Forbidden(f"{report.key} is not registered again: {managed_seed.key} is being deleted")
        return Precondition(_managed_seed_key(report), managed_seed.version if managed_seed is not None else 0)
    denied = f"the gardenlet of seed {report.seed} may not apply {report.key}"
    if report.key.kind != "seed" or managed_seed is None:
        raise Forbidden(f"{denied}: only its own Seed, those of ManagedSeeds here, and ShootStates of shoots here")
    if managed_seed.is_deleting:
        raise Forbidden(f"{denied}: {managed_seed.key} is being deleted")
    if not await _hosts(managed_seed.document(), report.seed, reads):
        raise Forbidden(f"{denied}: the shoot of {managed_seed.key} is not here")
    return Precondition(managed_seed.key, managed_seed.version)


async def authorize_delete(report: Report, reads: ReadCache) -> StoredObject:
    """Raise Forbidden unless the gardenlet may delete this; returns the object whose deletion it belongs to.

    That is the ManagedSeed that it hosts, of this Seed, or its own Seed, of this BackupBucket.
    """
    denied = f"the gardenlet of seed {report.seed} may delete no {report.key}"
    if report.key.kind == "backupbucket":
        seed = await reads.get(own_seed(report))
        if seed is None or not seed.is_deleting or report.key.name != seed.uid:
            raise Forbidden(f"{denied}: only the bucket of its Seed, while that is being deleted")
        return seed
    managed_seed = await _managed_seed_of(report, reads) if report.key.kind == "seed" else None
    if managed_seed is None or not managed_seed.is_deleting:
        raise Forbidden(f"{denied}: only the Seed of a ManagedSeed that is being deleted")
    if not await _hosts(managed_seed.document(), report.seed, reads):
        raise Forbidden(f"{denied}: the shoot of the ManagedSeed is not here")
    return managed_seed


async def is_own_object(report: Report, reads: ReadCache) -> bool:
    """True for what its reporter follows by its name: of the others the store knows where they are and have been."""
    if cluster_of(report.seed):  # whose agent was checked (`check_member`)
        return True
    if report.key.kind != "seed" or report.key == own_seed(report):
        return report.key == own_seed(report)
    managed_seed = await _managed_seed_of(report, reads)
    return managed_seed is not None and await _hosts(managed_seed.document(), report.seed, reads)


async def with_gardenlet_finalizer(managed_seed: Document, reads: ReadCache) -> Document:
    """A reported ManagedSeed with its gardenlet's finalizer, or without it once nothing is left of its seed.

    Raises Forbidden when its Seed still exists then: a seed without a host would be left behind.
    """
    if not report_admission.is_torn_down(managed_seed):
        return report_admission.without_observed_operation(with_finalizer(managed_seed, FINALIZER))
    name = name_of(managed_seed)
    seed = ObjectKey("seed", "", name)
    reads.invalidate(seed)
    if await reads.get(seed) is not None:
        raise Forbidden(f"managedseed {GARDEN_NAMESPACE}/{name} is not let go: {seed} is still there")
    return without_finalizer(managed_seed, FINALIZER)


async def _managed_seed_of(report: Report, reads: ReadCache) -> StoredObject | None:
    """The ManagedSeed of the name of a seed."""
    return await reads.get(_managed_seed_key(report))


def _managed_seed_key(report: Report) -> ObjectKey:
    return ObjectKey("managedseed", GARDEN_NAMESPACE, report.key.name)


async def _hosts(managed_seed: Document, seed: str, reads: ReadCache) -> bool:
    """True when a seed hosts the shoot of a ManagedSeed (or shall, where no seed has claimed it yet)."""
    name = str(section(managed_seed, "spec", "shoot").get("name") or "")
    shoot = await reads.get(ObjectKey("shoot", managed_seed["metadata"]["namespace"], name))
    return shoot is not None and report_admission.is_responsible(shoot.document(), seed)


async def _seed_of_bucket(report: Report, reads: ReadCache) -> Precondition:
    """Precondition on the Seed of a BackupBucket, which has its uid for a name."""
    seed = await reads.get(own_seed(report))
    if seed is None or report.key.name != seed.uid or not is_of_seed(report.key, report.body, report.seed):
        raise Forbidden(f"{report.key} is not the bucket of seed {report.seed}")
    if seed.is_deleting:
        raise Forbidden(f"{report.key}: seed {report.seed} is being deleted")
    return Precondition(seed.key, seed.version)


async def _shoot_of_entry(report: Report, reads: ReadCache) -> Precondition:
    """Precondition on the shoot of a BackupEntry, whose uid ends its name; an entry moves with its shoot."""
    owner = controller_of(report.body) or {}
    shoot = await reads.get(ObjectKey("shoot", report.key.namespace, str(owner.get("name") or "")))
    if (
        shoot is None
        or not report.key.name.endswith(f"--{shoot.uid}")
        or not report_admission.is_responsible(shoot.document(), report.seed)
    ):
        raise Forbidden(f"{report.key}: its shoot is not on seed {report.seed}")
    seed, stored = await reads.get(own_seed(report)), await reads.get(report.key)
    buckets = {None if seed is None else seed.uid, None if stored is None else bucket_name(stored.document())}
    if not report_admission.concerns(shoot.document(), seed_name(report.body)):
        raise Forbidden(f"{report.key}: spec.seedName is no seed of its shoot")
    if bucket_name(report.body) not in buckets:
        raise Forbidden(f"{report.key}: spec.bucketName is not the bucket of seed {report.seed}")
    return Precondition(shoot.key, shoot.version)


async def _bucket_of_secret(report: Report, reads: ReadCache) -> Precondition:
    """Precondition on the BackupBucket that the Secret of generated credentials is for; it says nothing else."""
    name = report.key.name.removeprefix(GENERATED_PREFIX)
    bucket = await reads.get(ObjectKey("backupbucket", "", name))
    if bucket is None or not is_of_seed(bucket.key, bucket.document(), report.seed):
        raise Forbidden(f"{report.key} is of no bucket of seed {report.seed}")
    report_admission.check_generated(report.body, str(report.key))
    return Precondition(bucket.key, bucket.version)


async def _shoot_of_state(report: Report, reads: ReadCache) -> Precondition:
    """Precondition on the shoot of a ShootState: a source that has handed it over changes nothing any more."""
    shoot = await reads.get(ObjectKey("shoot", report.key.namespace, report.key.name))
    if shoot is None or not report_admission.is_responsible(shoot.document(), report.seed):
        raise Forbidden(f"{report.key}: its shoot is not on seed {report.seed}")
    return Precondition(shoot.key, shoot.version)
