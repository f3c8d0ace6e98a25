"""ShootMutator: a shoot gets what it leaves open from its profile, and from its seed if it names one.

Facts: the profile; the seed that the change places the shoot on. Source: `plugin/pkg/shoot/mutator`. A shoot that a
scheduler places gets its ranges with the bind.
"""

from gardenbus.apiserver.domain.annotations import annotated
from gardenbus.apiserver.domain.cloud_profiles import profile_key
from gardenbus.apiserver.domain.operations import is_rollout_confined
from gardenbus.apiserver.domain.placed_shoots import placed_now_queries, seed_key
from gardenbus.apiserver.domain.plugins.plugin import AdmissionPlugin, AdmissionRule, Change
from gardenbus.apiserver.domain.profile_admission import profile_queries
from gardenbus.apiserver.domain.related_objects import RelatedObjects
from gardenbus.apiserver.domain.validation.field_cursor import invalid
from gardenbus.apiserver.domain.version_defaults import NOTHING_TO_FILL_IN, open_problems, with_complete_versions
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import is_deleting
from gardenbus.common.api.garden.binding_defaults import with_seed_networks
from gardenbus.common.api.garden.maintenance_windows import NEEDS_RETRY
from gardenbus.common.api.garden.profile_parts import profile_spec_of
from gardenbus.common.errors import InvalidResource


def _mutate(shoot: Document, change: Change, related: RelatedObjects) -> Document:
    before = section(change.old or {}, "spec")
    shoot = _with_retry(_with_versions(shoot, before, related, change), change.old)
    key = seed_key(shoot)
    if key is None or before.get("seedName"):
        return shoot
    seed = related.objects.get(key)
    return shoot if seed is None else _with_networks(shoot, seed)


def _with_retry(shoot: Document, old: Document | None) -> Document:
    """A failed shoot that keeps changes for its maintenance is tried again in its next window."""
    if old is None or not is_rollout_confined(old, shoot) or section(shoot, "spec") == section(old, "spec"):
        return shoot
    has_failed = section(old, "status", "lastOperation").get("state") == "Failed"
    return annotated(shoot, NEEDS_RETRY, "true") if has_failed else shoot


def _with_networks(shoot: Document, seed: Document) -> Document:
    try:
        return {**shoot, "spec": with_seed_networks(shoot, seed)}
    except InvalidResource:  # validation reports it
        return shoot


def _with_versions(shoot: Document, before: Document, related: RelatedObjects, change: Change) -> Document:
    key, spec = profile_key(shoot), section(shoot, "spec")
    offered = profile_spec_of(related.objects.get(key)) if key is not None else None
    if not offered or not spec:
        return shoot
    complete = with_complete_versions(spec, before, offered, change.now)
    if not is_deleting(shoot) and (problems := list(open_problems(complete, before, offered))):
        raise invalid(problems)
    return shoot if complete is spec else {**shoot, "spec": complete}


PLUGIN = AdmissionPlugin(
    name="ShootMutator",
    acts="completes the versions, machine images and architectures of a shoot, and gives it ranges of its seed",
    rejections=(NOTHING_TO_FILL_IN,),
    rules=(
        AdmissionRule(("Shoot",), queries=profile_queries, mutate=_mutate),
        AdmissionRule(("Shoot",), queries=placed_now_queries),
    ),
)
