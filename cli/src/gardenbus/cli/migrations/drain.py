"""Empties a seed: hides it from the scheduler, then moves shoot by shoot to seeds that the scheduler would choose.

Everything that it has to know stands in the landscape: stopped at any point and started again, it goes on.
"""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from gardenbus.cli.client.api import ApiClient
from gardenbus.cli.client.state_collector import CollectedState, collect_state
from gardenbus.cli.client.summaries import summarize_shoot
from gardenbus.cli.manifests.files import as_mapping
from gardenbus.cli.migrations.runner import MigrationOutcome, Migrations
from gardenbus.common.api.document import Document
from gardenbus.common.api.garden.migration_feasibility import hand_over_obstacle
from gardenbus.common.api.garden.moves import Immovable, Move
from gardenbus.common.api.garden.rows import seed_row
from gardenbus.common.api.garden.scheduling_profiles import SchedulingProfile
from gardenbus.common.api.garden.seed_management import CORDONED_BY, CORDONED_BY_OPERATOR
from gardenbus.common.api.keys import CLUSTER_SCOPE
from gardenbus.common.errors import Forbidden
from gardenbus.common.ports.clock import Clock
from gardenbus.scheduling.descheduling.relocation import plan_moves
from gardenbus.scheduling.user_filters import SeedFilter

PAUSE_SECONDS = 1.0
"""Between looks at shoots that leave, or arrive, by themselves."""

_MAX_OUTDATED_PLANS = 3
"""Plans that the landscape may be faster than, one after the other."""


class DrainPlan(msgspec.Struct, frozen=True):
    """Plan of a drain: `leaving` are on their way already, `stays` are not moved, with reasons."""

    seed: str
    leaving: Sequence[Move]
    moves: Sequence[Move]
    stays: Sequence[Immovable]

    @property
    def is_empty(self) -> bool:
        """True when no shoot is left on the seed."""
        return not (self.leaving or self.moves or self.stays)

    @property
    def stuck(self) -> Sequence[Immovable]:
        """Shoots that stay however long one waits."""
        return [stay for stay in self.stays if not stay.waits]


class DrainResult(msgspec.Struct, frozen=True):
    """Result of a drain. Without `failed` and `stays` the seed is empty."""

    seed: str
    moved: Sequence[Move]
    stays: Sequence[Immovable] = ()
    failed: Move | None = None
    reason: str = ""
    under_way: Sequence[Move] = ()


def plan_drain(state: CollectedState, seed: str, profiles: Sequence[SchedulingProfile] = ()) -> DrainPlan:
    """Plan for every shoot that counts on a seed, by the profile of its scheduler."""
    here: list[Document] = []
    leaving: list[Move] = []
    for shoot in state.shoots:
        row = summarize_shoot(shoot)
        if row.seed == seed:
            here.append(shoot)
        elif row.actual_seed == seed and row.seed:
            leaving.append(Move(row.namespace, row.name, seed, row.seed))
    landscapes = {each.scheduler_name: state.snapshot.landscape.with_profile(each) for each in profiles}
    planned = plan_moves(here, state.snapshot, source=seed, forbidden=state.hosting, landscapes=landscapes)
    return DrainPlan(
        seed,
        leaving,
        [each for each in planned if isinstance(each, Move)],
        sorted((each for each in planned if isinstance(each, Immovable)), key=lambda stay: (stay.namespace, stay.name)),
    )


async def get_seed(api: ApiClient, name: str) -> Document:
    """The Seed. Raises ApiError when it is not there."""
    return await api.call(f"get.seed.{CLUSTER_SCOPE}.{name}")


async def set_visible(api: ApiClient, name: str, *, visible: bool) -> tuple[Document, bool]:
    """Hide a seed from the scheduler, or show it; returns the Seed and True for a change."""
    seed = await get_seed(api, name)
    stated = as_mapping(as_mapping(as_mapping(seed.get("spec")).get("settings")).get("scheduling")).get("visible")
    if stated is visible or (stated is None and visible):
        return seed, False
    patch = {
        "metadata": {"annotations": {CORDONED_BY: None if visible else CORDONED_BY_OPERATOR}},
        "spec": {"settings": {"scheduling": {"visible": visible}}},
    }
    return await api.call(f"patch.seed.{CLUSTER_SCOPE}.{name}", patch), True


class SeedDrain:
    """One drain of one seed. `tell` hears the plan of each round, and `Migrations` of each migration."""

    def __init__(  # noqa: PLR0913
        self,
        api: ApiClient,
        seed: str,
        *,
        migrations: Migrations,
        clock: Clock,
        timeout_seconds: float,
        filters: Sequence[SeedFilter] = (),
        profiles: Sequence[SchedulingProfile] = (),
        notify: Callable[[DrainPlan], None] = lambda _: None,
    ) -> None:
        self._api = api
        self._seed = seed
        self._migrations = migrations
        self._clock = clock
        self._timeout_seconds = timeout_seconds
        self._filters = filters
        self._profiles = profiles
        self._notify = notify
        self._moved: list[Move] = []
        self.has_cordoned = False
        """True once the seed has been cordoned by this drain, which a drain that fails leaves so."""

    async def run(self) -> DrainResult:
        """Carry it out, plan after plan, until the seed is empty or nothing more can be done.

        Raises Forbidden when the seed's gardenlet does not respond, or it has shoots and no backup; ApiError,
        Unavailable.
        """
        if reason := hand_over_obstacle(await get_seed(self._api, self._seed)):
            raise Forbidden(
                f"seed {self._seed} cannot hand its shoots over: {reason}. If it is lost for good, restore them "
                "elsewhere one by one: gardenbus bind NAMESPACE/NAME SEED --force"
            )
        await self._check_backup()
        outdated_plans = 0
        idle_since = self._clock.monotonic()
        while True:
            await set_visible(self._api, self._seed, visible=False)
            self.has_cordoned = True
            plan = plan_drain(await collect_state(self._api, self._filters), self._seed, self._profiles)
            self._notify(plan)
            if plan.leaving or plan.moves:
                outcome = await self._migrations.carry_out([*plan.leaving, *plan.moves])
                self._moved += outcome.done
                outdated_plans = outdated_plans + 1 if outcome.is_rejected and not outcome.done else 0
                if outcome.failed is not None and (not outcome.is_rejected or outdated_plans >= _MAX_OUTDATED_PLANS):
                    return self._failed(outcome, plan)
                idle_since = self._clock.monotonic()
            elif len(plan.stuck) == len(plan.stays) or self._clock.monotonic() - idle_since >= self._timeout_seconds:
                return DrainResult(self._seed, self._moved, plan.stays)
            else:
                await self._clock.sleep(PAUSE_SECONDS)

    async def _check_backup(self) -> None:
        """Reject before anything is changed where no control plane can leave. Raises Forbidden."""
        if as_mapping(as_mapping((await get_seed(self._api, self._seed)).get("spec")).get("backup")):
            return
        here = len(await self._api.items("shoot", {"fieldSelector": f"spec.seedName={self._seed}"}))
        if here:
            raise Forbidden(
                f"seed {self._seed} has no spec.backup, and a control plane moves by its backup: "
                f"{'its shoot' if here == 1 else f'its {here} shoots'} cannot leave it. Nothing was changed; "
                f"`gardenbus cordon {self._seed}` keeps others away"
            )

    def _failed(self, outcome: MigrationOutcome, plan: DrainPlan) -> DrainResult:
        return DrainResult(self._seed, self._moved, plan.stays, outcome.failed, outcome.reason, outcome.under_way)


def plan_document(plan: DrainPlan, seed: Document) -> dict[str, Any]:
    """A plan for programs."""
    return {
        "seed": plan.seed,
        "cordoned": not seed_row(seed).is_visible,
        "leaving": list(map(move_document, plan.leaving)),
        "moves": list(map(move_document, plan.moves)),
        "stays": list(map(stay_document, plan.stays)),
    }


def drained_document(drained: DrainResult) -> dict[str, Any]:
    """Result of a drain, for programs."""
    failed = {**move_document(drained.failed), "reason": drained.reason} if drained.failed is not None else None
    return {
        "seed": drained.seed,
        "moved": list(map(move_document, drained.moved)),
        "stays": list(map(stay_document, drained.stays)),
        "failed": failed,
        "underWay": list(map(move_document, drained.under_way)),
    }


def move_document(move: Move) -> dict[str, Any]:
    """One move for programs."""
    return {"shoot": f"{move.namespace}/{move.name}", "from": move.source, "to": move.target}


def stay_document(stay: Immovable) -> dict[str, Any]:
    """One shoot that stays, for programs."""
    return {"shoot": f"{stay.namespace}/{stay.name}", "reason": stay.reason, "waits": stay.waits}
