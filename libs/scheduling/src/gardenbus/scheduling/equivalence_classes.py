"""Equivalence classes of shoots: a request holds all that a decision reads, so that equal requests share the result.

A request has two parts. The `Constraints` are what shoots of one kind share (profile, region, selector, …): the seeds
that meet them are worked out once. The `Ranges` often differ from shoot to shoot and are checked last, like `requests`.
"""

from collections.abc import Sequence
from hashlib import blake2b

import msgspec

from gardenbus.common.api.decoding import json_decoder
from gardenbus.common.api.document import NO_SPEC, Document, StoredObject
from gardenbus.common.api.garden.feasibility import Tolerations
from gardenbus.common.api.garden.scheduling_profiles import PreferredSeeds
from gardenbus.common.api.garden.scheduling_requirements import RESOLVED, Requests, resolved_requirements
from gardenbus.common.api.garden.shoot_groups import NO_GROUP_RULES, GroupRules
from gardenbus.common.api.garden.shoot_networks import Ranges, ranges_of
from gardenbus.common.api.garden.shoots import TESTING_PURPOSE, Shoot, ShootSpec, ShootStatus
from gardenbus.common.api.garden.tolerations import UNCHECKED_TOLERATIONS, unchecked_in
from gardenbus.common.api.selectors import LabelSelector
from gardenbus.common.api.views import Metadata
from gardenbus.scheduling.user_filters import SeedFilter, input_of

_encode = msgspec.json.Encoder(order="deterministic").encode


class Constraints(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The requirements that shoots of one class share.

    `domain_below` is the shoot's DNS domain without its first label; `domain_is_own` is whether that label is the
    shoot's name. No default domain can match more than that, so that the shoots of a project are alike. `unchecked` are
    the tolerations that count only if the Project allows them. `filter_inputs` is what users' own filters read:
    (filter, canonical JSON). `purpose` is empty where no score or filter of the profile depends on it.
    """

    namespace: str
    profile_kind: str = ""
    profile: str = ""
    provider: str = ""
    region: str = ""
    is_testing: bool = False
    selector: LabelSelector | None = None
    is_zonal: bool = False
    control_plane_zones: tuple[str, ...] = ()
    worker_zones: tuple[str, ...] = ()
    access_restrictions: tuple[str, ...] = ()
    tolerations: Tolerations = ()
    unchecked: Tolerations = ()
    domain_below: str | None = None
    domain_is_own: bool = False
    filter_inputs: tuple[tuple[str, str], ...] = msgspec.field(default=(), name="wishes")
    purpose: str = ""
    required_seeds: tuple[LabelSelector, ...] = ()
    preferred_seeds: tuple[PreferredSeeds, ...] = ()


class SchedulingRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """All that a decision reads from a shoot; stored with shoots that wait, under the names of its first version."""

    constraints: Constraints = msgspec.field(name="demand")
    ranges: Ranges
    requests: Requests = ()
    rules: GroupRules = NO_GROUP_RULES
    priority: int = 0
    """Read by the order of those who wait alone: no decision on one shoot depends on it."""


_decode = json_decoder(SchedulingRequest)
_decode_metadata = json_decoder(Metadata)
_decode_spec = json_decoder(ShootSpec)
_decode_status = json_decoder(ShootStatus)
_READ_ANNOTATIONS = (UNCHECKED_TOLERATIONS.encode(), RESOLVED.encode())


def pending_shoot(stored: StoredObject) -> Shoot:
    """A stored shoot without seed as far as scheduling reads it: of its metadata only what a decision reads.

    It reads the parts as they are stored, each once, and leaves out those that cannot matter. Raises InvalidResource.
    """
    parts = stored.parts
    try:
        spec = ShootSpec() if parts.spec == NO_SPEC else _decode_spec(b"{" + parts.spec + b"}")
        status = _decode_status(b"{" + parts.status + b"}") if b'"networking"' in parts.status else ShootStatus()
        is_annotated = any(name in parts.meta for name in _READ_ANNOTATIONS)
        annotations = _decode_metadata(b"{" + parts.meta + b"}").annotations if is_annotated else {}
    except msgspec.ValidationError:  # a null, or a mistake that has to be reported
        return Shoot.from_document(stored.encoded())
    metadata = Metadata(
        name=stored.key.name,
        namespace=stored.key.namespace,
        annotations=annotations,
        deletion_timestamp=stored.deleting_at or None,
    )
    return Shoot(metadata, spec, status)


def request_of(
    shoot: Shoot,
    document: Document | None = None,
    filters: Sequence[SeedFilter] = (),
    *,
    reads_purpose: bool = False,
) -> SchedulingRequest:
    """Reduce a shoot to its request; `document` is needed when users' own `filters` want to read it."""
    spec = shoot.spec
    requirements = resolved_requirements(shoot.metadata.annotations)
    kind, profile = _profile_of(shoot)
    below, is_own = _domain_of(shoot)
    constraints = Constraints(
        namespace=shoot.metadata.namespace,
        profile_kind=kind,
        profile=profile,
        provider=spec.provider.type,
        region=spec.region,
        is_testing=spec.purpose == TESTING_PURPOSE,
        selector=spec.seed_selector.labels if spec.seed_selector is not None else None,
        is_zonal=shoot.is_zonal,
        control_plane_zones=tuple(sorted(set(spec.control_plane.zones))) if spec.control_plane else (),
        worker_zones=tuple(sorted({zone for worker in spec.provider.workers for zone in worker.zones})),
        access_restrictions=tuple(sorted(restriction.name for restriction in spec.access_restrictions)),
        tolerations=shoot.tolerations,
        unchecked=unchecked_in(shoot.metadata.annotations, shoot.tolerations),
        domain_below=below,
        domain_is_own=is_own,
        filter_inputs=tuple((each.name, _encode(input_of(each, document or {})).decode()) for each in filters),
        purpose=spec.purpose if reads_purpose else "",
        required_seeds=requirements.required_seeds,
        preferred_seeds=requirements.preferred_seeds,
    )
    return SchedulingRequest(
        constraints,
        ranges_of(shoot),
        requirements.requests,
        requirements.group_rules,
        requirements.priority,
    )


def descriptor(request: SchedulingRequest) -> bytes:
    """The request as canonical JSON; `request_from_descriptor` gives the equal request back."""
    return _encode(request)


def request_from_descriptor(described: bytes) -> SchedulingRequest:
    """Read a descriptor; raises msgspec.ValidationError for what is none (of this version)."""
    return _decode(described)


def equivalence_class(request: SchedulingRequest) -> str:
    """A short name that shoots with equal requests share, and others do not."""
    return blake2b(descriptor(request), digest_size=10).hexdigest()


def skip_reason(shoot: Shoot, scheduler_name: str) -> str:
    """The reason why this scheduler does not place the shoot; "" when it is responsible."""
    if shoot.spec.seed_name:
        return f"it is on seed {shoot.spec.seed_name!r} already"
    if shoot.metadata.deletion_timestamp:
        return "it is being deleted"
    if shoot.scheduler_name != scheduler_name:
        return f"it waits for the scheduler {shoot.scheduler_name!r}"
    if gates := resolved_requirements(shoot.metadata.annotations).gates:
        return f"it waits for the scheduling gates {', '.join(gates)}"
    if shoot.is_self_hosted:
        return "it hosts its own control plane and needs no seed"
    return ""


def _profile_of(shoot: Shoot) -> tuple[str, str]:
    reference = shoot.spec.cloud_profile
    if reference is not None:
        return reference.kind or "CloudProfile", reference.name
    return ("CloudProfile", shoot.spec.cloud_profile_name) if shoot.spec.cloud_profile_name else ("", "")


def _domain_of(shoot: Shoot) -> tuple[str | None, bool]:
    domain = shoot.spec.dns.domain if shoot.spec.dns else None
    if not domain or "." not in domain:
        return None, False
    first, _, below = domain.partition(".")
    return below, first == shoot.metadata.name
