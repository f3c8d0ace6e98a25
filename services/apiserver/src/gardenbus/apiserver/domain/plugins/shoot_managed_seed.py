"""ShootManagedSeed: a shoot with a ManagedSeed keeps what the seed needs, and is not deleted.

Facts: the ManagedSeed of the shoot, for changes that concern it. Source: `plugin/pkg/shoot/managedseed`.
"""

from collections.abc import Sequence

from gardenbus.apiserver.domain.plugins.plugin import AdmissionPlugin, AdmissionRule, of_stored
from gardenbus.apiserver.domain.rejection_messages import RejectionMessage
from gardenbus.apiserver.domain.shoot_managed_seed import (
    CHANGE_REJECTIONS,
    admit_shoot_of_managed_seed,
    guards_of_shoot_of_managed_seed,
    managed_seed_of_shoot_queries,
)
from gardenbus.apiserver.domain.use_as_seed import FIELD as USE_AS_SEED_FIELD
from gardenbus.apiserver.domain.use_as_seed import annotation_of
from gardenbus.common.api.document import Document
from gardenbus.common.api.document_parts import key_of_document
from gardenbus.common.ports.store import WritePrecondition

_STANDS_ON = RejectionMessage("{shoot}: a ManagedSeed uses it: {way_out}")


def _deletion_guards(stored: Document) -> Sequence[WritePrecondition]:
    key = key_of_document(stored)
    way_out = "delete that first, and wait until it is gone"
    if annotation_of(stored) is not None:
        way_out = f"take off {USE_AS_SEED_FIELD} first, which deletes that too, and wait until it is gone"
    return (WritePrecondition("references", key.stored, _STANDS_ON(shoot=key, way_out=way_out)),)


PLUGIN = AdmissionPlugin(
    name="ShootManagedSeed",
    acts="keeps the ranges, zones, ingress and autoscaler that the ManagedSeed on a shoot needs, and the shoot itself",
    rejections=(*CHANGE_REJECTIONS, _STANDS_ON),
    rules=(
        AdmissionRule(
            ("Shoot",),
            queries=managed_seed_of_shoot_queries,
            admit=of_stored(admit_shoot_of_managed_seed),
            guards=of_stored(guards_of_shoot_of_managed_seed),
            deletion_guards=_deletion_guards,
        ),
    ),
)
