"""DeletionConfirmation: what is dear is deleted only after somebody has confirmed it, and who did is recorded.

Facts: the Project of a shoot, which may demand that another person confirms than deletes. They are read without a guard
on the deletion, as by Gardener: a demand that comes in the same instant comes too late. What the controller manager
deletes (a shoot whose lifetime has ended) nobody has requested, and it needs no second subject: this is ours. Two
rules go beyond Gardener, where a deletion takes two: nobody brings such an end forward, and nobody, operators included,
relabels a shoot so that the Project's rule no longer selects it; one subject could delete it then. It leaves the rule
when that is changed. Both leave the controller manager alone. Source: `plugin/pkg/global/deletionconfirmation`, and
of protected objects `pkg/utils/gardener`'s deletion protection.
"""

from collections.abc import Sequence
from datetime import datetime

from gardenbus.apiserver.domain.annotations import with_confirmer
from gardenbus.apiserver.domain.authorization.actions import CONTROLLER_MANAGER
from gardenbus.apiserver.domain.merging import CONFIRMED_BY
from gardenbus.apiserver.domain.plugins.extension_labels import own_labels
from gardenbus.apiserver.domain.plugins.plugin import AdmissionPlugin, AdmissionRule, Change
from gardenbus.apiserver.domain.rejection_messages import RejectionMessage
from gardenbus.apiserver.domain.related_objects import ProjectQuery, RelatedObjects, RelatedQuery
from gardenbus.common.api.confirmation import CONFIRMATION, is_confirmed
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import mappings, namespace_of
from gardenbus.common.api.garden.quotas import EXPIRATION_ANNOTATION
from gardenbus.common.api.identity.principals import SERVICE_ACCOUNT_PREFIX, SERVICE_ACCOUNTS_GROUP, groups_of_user
from gardenbus.common.api.kinds import EXTENSIONS
from gardenbus.common.api.selectors import parse_selector
from gardenbus.common.errors import Forbidden

_UNCONFIRMED = RejectionMessage(
    f'metadata.annotations[{CONFIRMATION}]: the {{kind}} is deleted only after this annotation was set to "true"'
)
_SAME_SUBJECT = RejectionMessage(
    f"metadata.annotations[{CONFIRMED_BY}]: you are not allowed to both confirm the deletion and send the request to"
    " delete: the Project demands that another subject does one of the two"
)
_BROUGHT_FORWARD = RejectionMessage(
    f"metadata.annotations[{EXPIRATION_ANNOTATION}]: may be moved to a later time only: the Project demands that two"
    " subjects delete this Shoot, and what expires is deleted"
)
_RELABELLED = RejectionMessage(
    "metadata.labels: spec.dualApprovalForDeletion of the Project demands that two subjects delete this Shoot, and"
    " would not with these labels: keep those that it selects by, or change the Project first"
)

CONFIRMED_KINDS = ("Shoot", "Project", "ShootState")
PROTECTED = "gardener.cloud/deletion-protected"
_PERSON = ""


def _mutate(shoot: Document, change: Change, _related: RelatedObjects) -> Document:
    return with_confirmer(shoot, change.old, change.user)


def _admit_deletion(stored: Document, _user: str | None, _related: RelatedObjects) -> None:
    if _needs_confirmation(stored) and not is_confirmed(stored):
        raise Forbidden(_UNCONFIRMED(kind=stored["kind"]))


def _needs_confirmation(stored: Document) -> bool:
    return (
        stored["kind"] in CONFIRMED_KINDS
        or str(stored.get("apiVersion")).startswith(f"{EXTENSIONS}/")
        or section(stored, "metadata", "labels").get(PROTECTED) == "true"
    )


def _deletion_queries(shoot: Document) -> Sequence[RelatedQuery]:
    return (ProjectQuery(namespace_of(shoot)),)


def _admit_approval(shoot: Document, user: str | None, related: RelatedObjects) -> None:
    """Check that another one has confirmed; `user` is None for what the system itself deletes."""
    project = related.projects.get(namespace_of(shoot))
    confirmer = section(shoot, "metadata", "annotations").get(CONFIRMED_BY)
    if user is None or project is None or confirmer != user or not _takes_two(project, shoot, user):
        return
    raise Forbidden(_SAME_SUBJECT())


def _expiration_of(shoot: Document | None) -> datetime | None:
    """Instant at which a shoot expires; None where nothing, or no instant, says so."""
    try:
        found = datetime.fromisoformat(str(section(shoot or {}, "metadata", "annotations").get(EXPIRATION_ANNOTATION)))
    except ValueError:
        return None
    return found if found.tzinfo is not None else None


def _is_brought_forward(shoot: Document, old: Document | None) -> bool:
    """True where a stored shoot is to expire sooner than it would, or there was nothing yet that says when."""
    stated, before = _expiration_of(shoot), _expiration_of(old)
    return old is not None and stated is not None and (before is None or stated < before)


def _queries(shoot: Document, old: Document | None) -> Sequence[RelatedQuery]:
    if old is None or not (_is_brought_forward(shoot, old) or _may_be_relabelled(shoot, old)):
        return ()
    return (ProjectQuery(namespace_of(shoot)),)


def _may_be_relabelled(shoot: Document, old: Document) -> bool:
    """True where the labels change, or the spec of a shoot that has labels by it."""
    if section(shoot, "metadata", "labels") != section(old, "metadata", "labels"):
        return True
    return bool(own_labels(old)) and section(shoot, "spec") != section(old, "spec")


def _admit(shoot: Document, change: Change, related: RelatedObjects) -> None:
    """Check that nobody has a shoot expire sooner, or relabels it, whose deletion takes two by what its labels were."""
    project = related.projects.get(namespace_of(shoot))
    if project is None or change.old is None or change.user == CONTROLLER_MANAGER:
        return
    if _is_brought_forward(shoot, change.old) and _takes_two(project, change.old, change.user):
        raise Forbidden(_BROUGHT_FORWARD())
    for subject in (_PERSON, SERVICE_ACCOUNT_PREFIX):
        if _takes_two(project, change.old, subject) and not _takes_two(project, shoot, subject):
            raise Forbidden(_RELABELLED())


def _takes_two(project: Document, shoot: Document, user: str) -> bool:
    for rule in mappings(section(project, "spec").get("dualApprovalForDeletion")):
        if rule.get("resource") != "shoots":
            continue
        if rule.get("includeServiceAccounts") is False and SERVICE_ACCOUNTS_GROUP in groups_of_user(user):
            continue
        try:
            if parse_selector(section(rule, "selector")).matches(section(shoot, "metadata", "labels")):
                return True
        except ValueError:
            continue
    return False


PLUGIN = AdmissionPlugin(
    name="DeletionConfirmation",
    acts=(
        "rejects the deletion of a Shoot, Project, ShootState, extension or protected object that is not confirmed,"
        " or of a Shoot by the one who confirmed it where its Project demands two, whose expiration is not"
        " brought forward then, and whose labels keep it there; records who has confirmed"
    ),
    rejections=(_UNCONFIRMED, _SAME_SUBJECT, _BROUGHT_FORWARD, _RELABELLED),
    rules=(
        AdmissionRule(
            ("Shoot",),
            queries=_queries,
            mutate=_mutate,
            admit=_admit,
            deletion_queries=_deletion_queries,
            admit_deletion=_admit_approval,
        ),
        AdmissionRule(admit_deletion=_admit_deletion),
    ),
)
