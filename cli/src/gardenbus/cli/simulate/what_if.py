"""Analysis of changes: a landscape of manifests scheduled as it is and with changes, and the difference.

Nothing is moved that a scheduler would not move: placed shoots stay, but for those on a seed that is removed, which
need another one. Pending shoots are placed in the order given, those of a removed seed after them, and the
added ones last.
"""

from collections.abc import Iterable, Sequence

import msgspec

from gardenbus.cli.simulate.scheduling import (
    NO_PROFILES,
    Profiles,
    SimulatedAssignment,
    of_kind,
    qualified_name,
    simulate,
    usage_after,
)
from gardenbus.common.api.document import Document, opened_lists, section
from gardenbus.common.api.garden.shoots import DEFAULT_SCHEDULER
from gardenbus.common.api.garden.strategies import SAME_REGION
from gardenbus.common.errors import BadRequest
from gardenbus.scheduling.seed_candidates import SeedCandidate
from gardenbus.scheduling.user_filters import SeedFilter

_PARTS = ("spec", "status")

_Simulated = tuple[Sequence[Document], Iterable[SimulatedAssignment]]
"""A landscape, and where its pending shoots are placed."""


class WhatIfChanges(msgspec.Struct, frozen=True, kw_only=True):
    """The changes to try. `shoots` more shoots like the one named `like` (`<ns>/<name>`); strategy None: as it is."""

    added: tuple[Document, ...] = ()
    removed: tuple[str, ...] = ()
    cordoned: tuple[str, ...] = ()
    shoots: int = 0
    like: str = ""
    strategy: str | None = None


class ShootChange(msgspec.Struct, frozen=True, rename="camel"):
    """A shoot whose seed differs; None is no seed, `message` is why it has none after. `is_new`: the changes add it."""

    shoot: str
    before: str | None
    after: str | None
    message: str | None = None
    is_new: bool = False


class SeedChange(msgspec.Struct, frozen=True, rename="camel"):
    """A seed's shoots before and after, when what waits has been placed. `used_*` None: it is not there."""

    seed: str
    used_before: int | None
    used_after: int | None
    allocatable: int | None
    change: str = ""
    """`added`, `removed`, `replaced`, `cordoned` or nothing."""


class WhatIfResult(msgspec.Struct, frozen=True, rename="camel"):
    """The difference that the changes make. `waiting_*` count the shoots that no seed fits."""

    strategy: str
    waiting_before: int
    waiting_after: int
    shoots: tuple[ShootChange, ...]
    seeds: tuple[SeedChange, ...]


def compare_schedules(
    documents: Iterable[Document],
    supposition: WhatIfChanges,
    *,
    strategy: str = SAME_REGION,
    filters: Sequence[SeedFilter] = (),
    scheduler_name: str = DEFAULT_SCHEDULER,
    profiles: Profiles = NO_PROFILES,
) -> WhatIfResult:
    """Schedule a landscape as it is and with the changes; the documents stay as they are.

    Raises BadRequest for a seed or shoot that is not there, and for a seed that is added and there already.
    """
    present = list(opened_lists(documents))
    supposed = _changed(present, supposition)
    chosen = supposition.strategy or strategy
    before = {each.shoot: each for each in simulate(present, strategy, filters, scheduler_name, profiles)}
    after = {each.shoot: each for each in simulate(supposed, chosen, filters, scheduler_name, profiles)}
    homes = {qualified_name(shoot): _seed_of(shoot) for shoot in of_kind(present, "Shoot")}
    changes: list[ShootChange] = []
    for name, assignment in after.items():
        earlier = before[name].seed if name in before else homes.get(name)
        is_new = name not in homes
        if is_new or assignment.seed != earlier:
            changes.append(ShootChange(name, earlier or None, assignment.seed, assignment.message, is_new))
    return WhatIfResult(
        chosen,
        sum(each.seed is None for each in before.values()),
        sum(each.seed is None for each in after.values()),
        tuple(changes),
        tuple(_seeds((present, before.values()), (supposed, after.values()), supposition)),
    )


def _changed(present: Sequence[Document], supposition: WhatIfChanges) -> list[Document]:
    seeds = {qualified_name(seed).removeprefix("/") for seed in of_kind(present, "Seed")}
    for seed in (*supposition.removed, *supposition.cordoned):
        if seed not in seeds:
            raise BadRequest(f"there is no seed {seed}")
    for seed in supposition.added:
        if qualified_name(seed).removeprefix("/") in seeds - set(supposition.removed):
            raise BadRequest(f"seed {qualified_name(seed).removeprefix('/')} exists already: add --remove-seed")
    supposed: list[Document] = []
    homeless: list[Document] = []
    for document in present:
        name = qualified_name(document).removeprefix("/")
        if document["kind"] == "Seed" and name in supposition.removed:
            continue
        if document["kind"] == "Seed" and name in supposition.cordoned:
            supposed.append(_cordoned(document))
        elif document["kind"] == "Shoot" and (left := _without(document, supposition.removed)) is not document:
            homeless.append(left)
        else:
            supposed.append(document)
    return [*supposed, *supposition.added, *homeless, *_more(present, supposition)]


def _cordoned(seed: Document) -> Document:
    settings = section(seed, "spec", "settings")
    scheduling = {**section(settings, "scheduling"), "visible": False}
    return {**seed, "spec": {**section(seed, "spec"), "settings": {**settings, "scheduling": scheduling}}}


def _without(shoot: Document, removed: Sequence[str]) -> Document:
    """The shoot without these seeds; the very same object when it is on none of them."""
    parts = {part: section(shoot, part) for part in _PARTS}
    if not any(section_of.get("seedName") in removed for section_of in parts.values()):
        return shoot
    left = {
        part: {name: value for name, value in values.items() if name != "seedName" or value not in removed}
        for part, values in parts.items()
    }
    return {**shoot, **left}


def _more(present: Sequence[Document], supposition: WhatIfChanges) -> list[Document]:
    if not supposition.shoots:
        return []
    shoots = {qualified_name(shoot): shoot for shoot in of_kind(present, "Shoot")}
    wanted = supposition.like
    named = [name for name in shoots if wanted in (name, name.partition("/")[2])]
    if len(named) != 1:
        raise BadRequest(f"there is no shoot {wanted}" if not named else f"several shoots are called {wanted}")
    model = shoots[named[0]]
    metadata = section(model, "metadata")
    spec = {name: value for name, value in section(model, "spec").items() if name != "seedName"}
    plain = {name: metadata[name] for name in ("namespace", "labels", "annotations") if name in metadata}
    width = len(str(supposition.shoots))
    names = [f"{metadata['name']}-like-{number:0{width}}" for number in range(1, supposition.shoots + 1)]
    return [
        {
            **{name: value for name, value in model.items() if name != "status"},
            "metadata": {**plain, "name": name},
            "spec": _with_own_domain(spec, str(metadata["name"]), name),
        }
        for name in names
    ]


def _with_own_domain(spec: Document, old: str, new: str) -> Document:
    """The spec of a shoot of another name: a domain that is made of the name, as binding fills it in, follows it."""
    domain = section(spec, "dns").get("domain")
    if not isinstance(domain, str) or not domain.startswith(f"{old}."):
        return spec
    return {**spec, "dns": {**section(spec, "dns"), "domain": new + domain.removeprefix(old)}}


def _seeds(before: _Simulated, after: _Simulated, supposition: WhatIfChanges) -> list[SeedChange]:
    uses: dict[str, list[int | None]] = {}
    capacities: dict[str, int | None] = {}
    for side, (documents, assignments) in enumerate((before, after)):
        usage = usage_after(documents, assignments)
        for document in of_kind(documents, "Seed"):
            candidate = SeedCandidate.of(document)
            uses.setdefault(candidate.name, [None, None])[side] = usage[candidate.name]
            capacities[candidate.name] = candidate.capacity
    return [
        SeedChange(name, was, will, capacities[name], _change(name, was, will, supposition))
        for name, (was, will) in sorted(uses.items())
    ]


def _change(name: str, was: int | None, will: int | None, supposition: WhatIfChanges) -> str:
    if was is None:
        return "added"
    if will is None:
        return "removed"
    if name in supposition.removed:
        return "replaced"
    return "cordoned" if name in supposition.cordoned else ""


def _seed_of(shoot: Document) -> str | None:
    seed = section(shoot, "spec").get("seedName")
    return seed if isinstance(seed, str) and seed else None
