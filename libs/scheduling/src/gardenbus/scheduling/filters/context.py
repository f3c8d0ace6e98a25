"""The input of a filter: a shoot's constraints with the objects that they refer to."""

import msgspec

from gardenbus.common.api.garden.cloudprofiles import CloudProfileSpec
from gardenbus.common.api.garden.feasibility import Tolerations
from gardenbus.common.api.garden.scheduling_requirements import Requests
from gardenbus.common.api.garden.shoot_groups import GroupChecks
from gardenbus.common.api.garden.shoot_networks import Ranges
from gardenbus.common.api.garden.tolerations import effective_tolerations
from gardenbus.scheduling.equivalence_classes import Constraints, SchedulingRequest
from gardenbus.scheduling.plugin_replies import NO_REPLIES, ClassReplies
from gardenbus.scheduling.results import Unschedulable
from gardenbus.scheduling.scores.strategies import SeedRanking, ranking_of
from gardenbus.scheduling.snapshot import Landscape, Snapshot
from gardenbus.scheduling.usage_index import UsageIndex

_NO_RANGES = Ranges(stated=False)
_NO_USAGE = UsageIndex()


class FilterContext(msgspec.Struct, frozen=True, eq=False):
    """Constraints with the profile and Project that they refer to. `tolerations` are those that count in the Project.

    `ranges`, `requests`, `usage` and `groups` are empty in what all shoots of a class share; see `with_request`.
    """

    constraints: Constraints
    profile: CloudProfileSpec
    project: str
    tolerations: Tolerations
    ranking: SeedRanking
    ranges: Ranges = _NO_RANGES
    usage: UsageIndex = _NO_USAGE
    requests: Requests = ()
    groups: GroupChecks | None = None
    replies: ClassReplies = NO_REPLIES

    @property
    def profile_name(self) -> str:
        """Kind and name of the profile."""
        return f"{self.constraints.profile_kind} {self.constraints.profile}"

    def with_request(
        self, request: SchedulingRequest, snapshot: Snapshot, groups: GroupChecks | None
    ) -> "FilterContext":
        """The context of one shoot of the class: with its networks, its rules, and the usage of the seeds."""
        return msgspec.structs.replace(
            self, ranges=request.ranges, usage=snapshot.usage, requests=request.requests, groups=groups
        )


def filter_context_of(constraints: Constraints, landscape: Landscape) -> FilterContext | Unschedulable:
    """The context of a class, or the result when an object that it refers to is missing."""
    if not constraints.profile:
        return Unschedulable("cloudprofile", "the shoot names no cloud profile")
    profile = landscape.profile(constraints.profile_kind, constraints.namespace, constraints.profile)
    if profile is None:
        return Unschedulable("cloudprofile", f"{constraints.profile_kind} {constraints.profile!r} not found")
    project = landscape.project_of(constraints.namespace)
    if project is None:
        return Unschedulable("project", f"the namespace {constraints.namespace!r} belongs to no Project")
    tolerations = effective_tolerations(constraints.tolerations, constraints.unchecked, project.allowed_tolerations)
    ranking = ranking_of(constraints, landscape)
    replies = landscape.replies_of(constraints)
    return FilterContext(constraints, profile, project.metadata.name, tolerations, ranking, replies=replies)
