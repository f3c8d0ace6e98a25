"""SeedValidator: a seed keeps the zones and domains that its shoots use, and is not deleted while it has shoots.

Here as in BackupBucketValidator, a WorkloadIdentity of backups is for the provider that they are stored at.
Facts: the shoots on the seed, when something is taken away; the WorkloadIdentity, when it or the provider is stated
newly. Source: `plugin/pkg/seed/validator`, `plugin/pkg/backupbucket/validator`.
"""

from collections.abc import Sequence

from gardenbus.apiserver.domain.plugins.plugin import AdmissionPlugin, AdmissionRule, Change
from gardenbus.apiserver.domain.rejection_messages import RejectionMessage
from gardenbus.apiserver.domain.related_objects import ObjectQuery, RelatedObjects, RelatedQuery
from gardenbus.apiserver.domain.seeds_in_use import REMOVALS, removals_in_use, shoots_on_seed_queries
from gardenbus.apiserver.domain.validation.field_cursor import invalid
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import key_of_document, name_of
from gardenbus.common.api.garden.backup_references import backup_identity
from gardenbus.common.errors import Forbidden
from gardenbus.common.ports.store import WritePrecondition

SCHEDULED = RejectionMessage(
    "{object}: gardenbus drain {seed} moves its shoots away, and those that are unknown are adopted or forgotten:"
    " shoots are scheduled on the seed"
)
_OTHER_TYPE = RejectionMessage("credentialsRef: {identity} is for {type}, and the backup is at {provider}")


def _queries(seed: Document, old: Document | None) -> Sequence[RelatedQuery]:
    if old is None:
        return ()
    return shoots_on_seed_queries(name_of(seed), section(seed, "spec"), section(old, "spec"))


def _admit(seed: Document, change: Change, related: RelatedObjects) -> None:
    if change.old is None:
        return
    shoots_on = related.shoots_on.get(name_of(seed), ())
    if problems := removals_in_use("spec", section(seed, "spec"), section(change.old, "spec"), shoots_on):
        raise invalid(problems)


def _identity_queries(document: Document, old: Document | None) -> Sequence[RelatedQuery]:
    found = backup_identity(document)
    is_new = found is not None and (old is None or backup_identity(old) != found)
    return (ObjectQuery(found[1]),) if found is not None and is_new else ()


def _admit_identity(document: Document, _change: Change, related: RelatedObjects) -> None:
    provider, key = backup_identity(document) or ("", None)
    identity = related.objects.get(key) if key is not None else None
    own = section(identity or {}, "spec", "targetSystem").get("type")
    if identity is not None and own != provider:
        raise Forbidden(_OTHER_TYPE(identity=key, type=own, provider=provider))


def deletion_guards(stored: Document) -> Sequence[WritePrecondition]:
    """No shoots on the seed of a Seed or a ManagedSeed."""
    key, name = key_of_document(stored), name_of(stored)
    return (WritePrecondition("usage", name, SCHEDULED(object=key, seed=name)),)


PLUGIN = AdmissionPlugin(
    name="SeedValidator",
    acts="keeps zones and domains that shoots on a seed use, and a seed with shoots; rejects credentials of its backup"
    " that are for another provider",
    rejections=(*REMOVALS, SCHEDULED, _OTHER_TYPE),
    rules=(
        AdmissionRule(("Seed",), queries=_queries, admit=_admit, deletion_guards=deletion_guards),
        AdmissionRule(("Seed",), queries=_identity_queries, admit=_admit_identity),
    ),
)
BUCKET_PLUGIN = AdmissionPlugin(
    name="BackupBucketValidator",
    acts="rejects credentials of a BackupBucket that are for another provider",
    rejections=(_OTHER_TYPE,),
    rules=(AdmissionRule(("BackupBucket",), queries=_identity_queries, admit=_admit_identity),),
)
