"""DeletionConfirmation: what is dear is deleted only after somebody has confirmed it, and who did is recorded.

Source: `plugin/pkg/global/deletionconfirmation`.
"""

from gardenbus.apiserver.domain.annotations import CONFIRMATION, is_confirmed, with_confirmer
from gardenbus.apiserver.domain.plugins.plugin import AdmissionPlugin, AdmissionRule, Change
from gardenbus.apiserver.domain.related_objects import RelatedObjects
from gardenbus.common.api.document import Document
from gardenbus.common.errors import Forbidden

CONFIRMED_KINDS = ("Shoot", "Project", "ShootState")


def _mutate(shoot: Document, change: Change, _related: RelatedObjects) -> Document:
    return with_confirmer(shoot, change.old, change.user)


def _admit_deletion(stored: Document) -> None:
    if not is_confirmed(stored):
        raise Forbidden(
            f"metadata.annotations[{CONFIRMATION}]: a {stored['kind']} is deleted only after this annotation was set "
            'to "true"'
        )


PLUGIN = AdmissionPlugin(
    name="DeletionConfirmation",
    acts="rejects the deletion of a Shoot, Project or ShootState that nobody has confirmed; records who has",
    rules=(
        AdmissionRule(("Shoot",), mutate=_mutate),
        AdmissionRule(CONFIRMED_KINDS, admit_deletion=_admit_deletion),
    ),
)
