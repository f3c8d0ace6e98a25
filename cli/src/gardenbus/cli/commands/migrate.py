"""`drain`, `rebalance`: migrations by plan."""

import contextlib
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich.text import Text

from gardenbus.cli.client.api import ApiClient
from gardenbus.cli.client.api_error import ApiError
from gardenbus.cli.client.resource_args import object_name
from gardenbus.cli.client.state_collector import collect_state
from gardenbus.cli.commands.bind import SeedName
from gardenbus.cli.commands.options import LandscapeOptions, Output, run_with_client, seconds_of
from gardenbus.cli.migrations.drain import (
    DrainPlan,
    DrainResult,
    SeedDrain,
    drained_document,
    get_seed,
    move_document,
    plan_document,
    plan_drain,
)
from gardenbus.cli.migrations.improvements import LEAST_POINTS, MOVED_AT, ImprovementLimits
from gardenbus.cli.migrations.progress import shown_progress
from gardenbus.cli.migrations.rebalancing import DistantShoot, RebalancingPlan, SeedShare, plan_rebalancing
from gardenbus.cli.migrations.runner import MigrationOutcome, Migrations
from gardenbus.cli.migrations.violations import BrokenRule, broken_rule_document, plan_violations
from gardenbus.cli.output.console import (
    PROGRAMS,
    Exit,
    Format,
    console,
    counted,
    errors,
    exit_codes,
    new_table,
    print_error,
    printed,
    show_lines,
    show_rows,
)
from gardenbus.cli.simulate.profiles import profiles_of
from gardenbus.common.api.document import Document
from gardenbus.common.api.garden.migration_feasibility import hand_over_obstacle
from gardenbus.common.api.garden.moves import Move
from gardenbus.common.api.garden.rows import seed_row
from gardenbus.common.api.garden.scheduling_profiles import SchedulingProfile
from gardenbus.common.errors import BadRequest, GardenbusError
from gardenbus.common.runtime.clock import SystemClock
from gardenbus.scheduling.user_filters import SeedFilter

MigrationTimeout = Annotated[str, typer.Option(help="How long one migration may take, as 90s or 10m.")]


ProfilesFile = Annotated[
    Path | None,
    typer.Option(
        help="SchedulerConfiguration whose profiles decide for the shoots of their schedulers.", dir_okay=False
    ),
]


def drain(  # noqa: PLR0913 - one parameter an option
    seed: SeedName,
    *,
    at_once: Annotated[int, typer.Option(min=1, help="How many shoots move at the same time.")] = 2,
    timeout: MigrationTimeout = "10m",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the plan and change nothing.")] = False,
    profiles: ProfilesFile = None,
    output: Output = Format.TABLE,
    landscape: LandscapeOptions,
) -> None:
    """Empty a seed: cordon it, then migrate its shoots to the seeds that the scheduler would choose.

    Each migration is waited for until the shoot is reconciled and healthy on its new seed. At the first that fails
    nothing more is begun. Stopped (Ctrl-C) or failed, the same command goes on where it was. The seed stays cordoned:
    `gardenbus uncordon` takes that back. Exit code 0: it is empty (with --dry-run: all would find a seed), 1: not.
    Shoots of schedulers of their own stay, unless --profiles has the profile by which their scheduler decides.

    Example: gardenbus drain aws-dublin --at-once 3
    """
    with exit_codes():
        seed = object_name(seed, "seed")
        timeout_seconds = _seconds(timeout)
        filters = _filters()
        served = _served(profiles, filters)

    if dry_run:
        _drain_plan(seed, filters, served, output, landscape)
        return

    async def work(api: ApiClient) -> DrainResult:
        await get_seed(api, seed)
        async with _migrations(api, f"drain {seed}", at_once, timeout_seconds, output) as (migrations, expect):
            seed_drain = SeedDrain(
                api,
                seed,
                migrations=migrations,
                clock=SystemClock(),
                timeout_seconds=timeout_seconds,
                filters=filters,
                profiles=served,
                notify=lambda plan: expect(len(plan.leaving) + len(plan.moves)),
            )
            try:
                return await seed_drain.run()
            except (ApiError, GardenbusError):
                if seed_drain.has_cordoned:
                    errors.print(_stays_cordoned(seed))
                raise

    with _interruptible(f"`gardenbus drain {seed}` goes on; `gardenbus uncordon {seed}` lets it take shoots again"):
        _print_drained(run_with_client(work, *landscape), output)


def _drain_plan(
    seed: str,
    filters: Sequence[SeedFilter],
    profiles: Sequence[SchedulingProfile],
    output: Format,
    landscape: LandscapeOptions,
) -> None:
    async def work(api: ApiClient) -> tuple[Document, DrainPlan]:
        document = await get_seed(api, seed)
        return document, plan_drain(await collect_state(api, filters), seed, profiles)

    document, plan = run_with_client(work, *landscape)
    if not printed(output, plan_document(plan, document), _lines_of(plan.moves)):
        if plan.is_empty:
            show_lines([f"seed {seed} has no shoots"])
        else:
            _print_moves([*plan.leaving, *plan.moves], [(s.namespace, s.name, plan.seed, s.reason) for s in plan.stays])
        if seed_row(document).is_visible:
            show_lines([f"seed {seed} would be cordoned first"])
        if reason := hand_over_obstacle(document):
            print_error(f"seed {seed} cannot hand its shoots over now: {reason}")
    if plan.stuck:
        raise typer.Exit(Exit.FAILED)


def _print_drained(drained: DrainResult, output: Format) -> None:
    if not printed(output, drained_document(drained), _lines_of(drained.moved)):
        for stay in drained.stays if drained.failed is None else ():
            show_lines([f"{stay.namespace}/{stay.name} stays: {stay.reason}"])
        if drained.failed is None and not drained.stays:
            moved = counted(len(drained.moved), "shoot")
            show_lines([f"seed {drained.seed} is empty; moved: {moved}; it stays cordoned"])
    if drained.failed is not None:
        _print_failure(drained.failed, drained.reason, drained.under_way, f"gardenbus drain {drained.seed}")
        errors.print(_stays_cordoned(drained.seed))
        raise typer.Exit(Exit.FAILED)
    if drained.stays:
        print_error(
            f"seed {drained.seed} still has {counted(len(drained.stays), 'shoot')}. Make room for them (`gardenbus "
            "explain` shows what keeps a shoot off each seed), or move them with `gardenbus bind`, and drain it again"
        )
        errors.print(_stays_cordoned(drained.seed))
        raise typer.Exit(Exit.FAILED)


def _stays_cordoned(seed: str) -> str:
    """The line that a drain ends with that did not empty its seed."""
    return f"seed {seed} stays cordoned; `gardenbus uncordon {seed}` lets it take shoots again"


def rebalance(  # noqa: PLR0913 - one parameter an option
    *,
    band: Annotated[str, typer.Option(help="How far apart used/allocatable of seeds may be, as 10% or 0.1.")] = "10%",
    apply: Annotated[bool, typer.Option("--apply", help="Carry the plan out.")] = False,
    at_once: Annotated[int, typer.Option(min=1, help="How many shoots move at the same time.")] = 1,
    max_moves: Annotated[int | None, typer.Option(min=0, help="Plan no more than the first moves.")] = None,
    violations: Annotated[
        bool, typer.Option("--violations", help="Plan for shoots that break a rule between shoots instead.")
    ] = False,
    profiles: ProfilesFile = None,
    improvement: Annotated[
        int, typer.Option(min=1, help="Points by which a move of a shoot with scores raises its sum, at the least.")
    ] = LEAST_POINTS,
    cooldown: Annotated[
        str, typer.Option(help="Time before a shoot that was moved for an improvement moves again.")
    ] = "24h",
    timeout: MigrationTimeout = "10m",
    output: Output = Format.TABLE,
    landscape: LandscapeOptions,
) -> None:
    """Plan migrations after which seeds are used alike, and with --apply carry them out.

    Seeds are compared with those that their shoots could move to by the scheduler's rules, no farther away. Shoots with
    the annotation scheduling.gardener.cloud/protect-from-rebalancing: "true", and those that seeds are made of, stay.
    Moves are few, not always the fewest; no plan at all needs fewer than the lower bound. Run again, it plans anew.
    Below the plan are the shoots that are farther away than a ready seed with room would be, each with what moves it.
    With --profiles shoots are planned for by the profile of their scheduler: those of one with scores move to where the
    sum of their scores is --improvement points higher, the greatest first, and not again within --cooldown. No move
    breaks a rule between shoots.
    With --violations the plan is for shoots that break a rule which they state about groups, where they are now.

    Example: gardenbus rebalance --band 10% --apply --at-once 2
    """
    with exit_codes():
        width = parse_band(band)
        timeout_seconds = _seconds(timeout)
        limits = ImprovementLimits(improvement, timedelta(seconds=seconds_of(cooldown)), datetime.now(UTC))
        filters = _filters()
        served = _served(profiles, filters)
    if violations:
        _mend_violations(filters, served, at_once, timeout_seconds, output, landscape, max_moves=max_moves, apply=apply)
        return

    planned = partial(plan_rebalancing, band=width, max_moves=max_moves, profiles=served, limits=limits)

    async def work(api: ApiClient) -> tuple[RebalancingPlan, MigrationOutcome | None]:
        seen = await collect_state(api, filters)
        plan = planned(seen.shoots, seen.snapshot, forbidden=seen.hosting)
        if not apply:
            return plan, None
        if output not in (*PROGRAMS, Format.NAME):
            _print_rebalancing(plan)
        async with _migrations(api, "rebalance", at_once, timeout_seconds, output) as (migrations, expect):
            expect(len(plan.moves))
            outcome = await migrations.carry_out(plan.moves)
        await _record_improvements(api, {each.move for each in plan.improvements} & {*outcome.done})
        return plan, outcome

    with _interruptible("`gardenbus rebalance` plans anew from here"):
        plan, outcome = run_with_client(work, *landscape)
    _print_rebalanced(plan, outcome, output)


def _print_rebalanced(plan: RebalancingPlan, outcome: MigrationOutcome | None, output: Format) -> None:
    if not printed(output, rebalancing_document(plan, outcome), _lines_of(plan.moves)):
        if outcome is None:
            _print_rebalancing(plan)
        else:
            show_lines([f"moved: {len(outcome.done)} of {counted(len(plan.moves), 'shoot')}"])
    if outcome is not None and outcome.failed is not None:
        _print_failure(outcome.failed, outcome.reason, outcome.under_way, "gardenbus rebalance --apply")
        raise typer.Exit(Exit.FAILED)


def _mend_violations(  # noqa: PLR0913  the options of its command
    filters: Sequence[SeedFilter],
    profiles: Sequence[SchedulingProfile],
    at_once: int,
    timeout_seconds: float,
    output: Format,
    landscape: LandscapeOptions,
    *,
    max_moves: int | None,
    apply: bool,
) -> None:
    """Show the shoots that break a rule between shoots, and carry their moves out."""

    async def work(api: ApiClient) -> tuple[Sequence[BrokenRule], MigrationOutcome | None]:
        seen = await collect_state(api, filters)
        broken = plan_violations(seen.shoots, seen.snapshot, seen.hosting, max_moves=max_moves, profiles=profiles)
        if not apply:
            return broken, None
        moves = [each.move for each in broken if each.move is not None]
        async with _migrations(api, "rebalance", at_once, timeout_seconds, output) as (migrations, expect):
            expect(len(moves))
            return broken, await migrations.carry_out(moves)

    with _interruptible("`gardenbus rebalance --violations` plans anew from here"):
        broken, outcome = run_with_client(work, *landscape)
    document = {"violations": list(map(broken_rule_document, broken))}
    if not printed(output, document, [f"{each.namespace}/{each.name}" for each in broken]):
        table = new_table("NAMESPACE", "SHOOT", "SEED", "RULE", "TO", folded="WHY")
        for each in broken:
            why = f"{each.detail}; stays: {each.stays_because}" if each.stays_because else each.detail
            table.add_row(each.namespace, each.name, each.seed, each.rule, each.target or "<stays>", Text(why))
        if broken:
            show_rows(table)
        break_one = "breaks" if len(broken) == 1 else "break"
        show_lines([f"{counted(len(broken), 'shoot')} {break_one} a rule between shoots"])
    if outcome is not None and outcome.failed is not None:
        retry = "gardenbus rebalance --violations --apply"
        _print_failure(outcome.failed, outcome.reason, outcome.under_way, retry)
        raise typer.Exit(Exit.FAILED)


async def _record_improvements(api: ApiClient, moves: Iterable[Move]) -> None:
    """Annotate the shoots that were moved for an improvement, so that they stay for a while."""
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    for move in moves:
        with contextlib.suppress(ApiError):  # deleted meanwhile
            annotated = {"metadata": {"annotations": {MOVED_AT: now}}}
            await api.call(f"patch.shoot.{move.namespace}.{move.name}", annotated)


def parse_band(text: str) -> Fraction:
    """`10%` or `0.1`, between 0 and 1. Raises BadRequest."""
    try:
        band = Fraction(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except (ValueError, ZeroDivisionError) as error:
        raise BadRequest(f"--band: must be a share such as 10% or 0.1, is {text!r}") from error
    if not 0 <= band <= 1:
        raise BadRequest(f"--band: must be between 0% and 100%, is {text!r}")
    return band


def rebalancing_document(plan: RebalancingPlan, outcome: MigrationOutcome | None) -> dict[str, Any]:
    """A plan, and what came of it (None: nothing was carried out), for programs."""
    document: dict[str, Any] = {
        "moves": list(map(move_document, plan.moves)),
        "lowerBound": plan.lower_bound,
        "complete": plan.is_complete,
        "seeds": list(map(_share_document, plan.seeds)),
        "leftOut": dict(plan.left_out),
        "distant": [_distant_document(each) for each in plan.distant],
        "improvements": [
            {**move_document(each.move), "sum": each.before, "sumThere": each.after} for each in plan.improvements
        ],
    }
    if outcome is not None:
        document["moved"] = list(map(move_document, outcome.done))
        failed = outcome.failed
        document["failed"] = None if failed is None else {**move_document(failed), "reason": outcome.reason}
        document["underWay"] = list(map(move_document, outcome.under_way))
    return document


def _distant_document(distant: DistantShoot) -> dict[str, Any]:
    names = {"namespace": distant.namespace, "name": distant.name, "source": distant.seed}
    return {**names, "nearer": msgspec.to_builtins(distant.nearer)}


def _share_document(share: SeedShare) -> dict[str, Any]:
    return {
        "seed": share.seed,
        "group": share.group,
        "allocatable": share.allocatable,
        "used": share.used,
        "planned": share.planned,
        "within": share.is_within,
        "willBeWithin": share.will_be_within,
    }


def _print_rebalancing(plan: RebalancingPlan) -> None:
    table = new_table("SEED", "GROUP", "SHOOTS", "PLANNED", "USED", "WILL BE", "IN BAND")
    for share in plan.seeds:
        table.add_row(
            share.seed,
            share.group,
            f"{share.used}/{share.allocatable}",
            f"{share.planned}/{share.allocatable}",
            f"{100 * share.used / share.allocatable:.0f}%",
            f"{100 * share.planned / share.allocatable:.0f}%",
            "yes" if share.will_be_within else "no",
        )
    if plan.seeds:
        show_rows(table)
        show_lines([""])
    if plan.moves:
        _print_moves(plan.moves, ())
    for each in plan.improvements:
        show_lines(
            [f"{each.move.namespace}/{each.move.name}: {each.points} points better, {each.before} to {each.after}"]
        )
    least = f"; no plan needs fewer than {plan.lower_bound}" if plan.is_complete else ""
    show_lines([f"{counted(len(plan.moves), 'move')} planned{least}"])
    for seed, reason in plan.left_out.items():
        errors.print(f"seed {seed} takes no part: {reason}")
    if not plan.seeds and not plan.improvements:
        show_lines(["no two seeds could exchange shoots"])
    elif not plan.is_complete:
        least = f"{counted(plan.lower_bound, 'move')} at the least"
        show_lines([f"not every seed comes into the band, which takes {least}: the rules or --max-moves allow no more"])
    _print_distant(plan.distant)


def _print_distant(distant: Sequence[DistantShoot]) -> None:
    """The shoots that are farther away than they would be if they were scheduled now, and what moves each."""
    if not distant:
        return
    show_lines([f"{counted(len(distant), 'shoot')} farther away than a ready seed with room:"])
    table = new_table("NAMESPACE", "SHOOT", "SEED", "DISTANCE", "NEARER", "DISTANCE", folded="BY")
    for each in distant:
        nearer = each.nearer
        suggestion = (
            f"none: its domain is made of {each.seed}'s default domain"
            if nearer.is_kept_by_domain
            else f"gardenbus bind {each.namespace}/{each.name} {nearer.seed}"
        )
        distances = str(nearer.own_distance), str(nearer.distance)
        table.add_row(each.namespace, each.name, each.seed, distances[0], nearer.seed, distances[1], Text(suggestion))
    show_rows(table)


def _lines_of(moves: Sequence[Move]) -> list[str]:
    return [f"{move.namespace}/{move.name} {move.target}" for move in moves]


def _print_moves(moves: Sequence[Move], stays: Sequence[tuple[str, str, str, str]]) -> None:
    table = new_table("NAMESPACE", "SHOOT", "FROM", "TO", folded="WHY NOT")
    for move in moves:
        table.add_row(move.namespace, move.name, move.source, move.target, "")
    for namespace, name, source, reason in stays:
        table.add_row(namespace, name, source, "<stays>", Text(reason))
    show_rows(table)


@contextlib.asynccontextmanager
async def _migrations(
    api: ApiClient, title: str, at_once: int, timeout_seconds: float, output: Format
) -> AsyncGenerator[tuple[Migrations, Callable[[int], None]]]:
    """Migrations that are shown while they run; on stderr where stdout is for programs."""
    shown_on = console if output in (Format.TABLE, Format.WIDE) else errors
    with shown_progress(shown_on, title) as progress:
        yield (
            Migrations(api, SystemClock(), at_once=at_once, timeout_seconds=timeout_seconds, notify=progress.on_event),
            progress.expect,
        )


def _print_failure(failed: Move, reason: str, under_way: Sequence[Move], retry_command: str) -> None:
    name = f"{failed.namespace}/{failed.name}"
    print_error(f"shoot {name} ({failed.source} → {failed.target}): {reason}")
    hints = [
        f"gardenbus describe shoot {failed.name} -n {failed.namespace}   shows what it waits for",
        f"{retry_command}   goes on when that is mended",
        f"gardenbus bind {name} {failed.source}   cancels the migration while nothing has started",
        f"gardenbus bind {name} SEED --force   restores it when one of the two seeds is lost for good",
    ]
    for hint in hints:
        errors.print(f"  {hint}")
    for move in under_way:
        errors.print(f"  {move.namespace}/{move.name} is still moving to {move.target}: that goes on by itself")


@contextlib.contextmanager
def _interruptible(hint: str) -> Generator[None]:
    try:
        yield
    except KeyboardInterrupt:
        errors.print(f"\nstopped; migrations that have begun go on by themselves. {hint}")
        raise typer.Exit(Exit.INTERRUPTED) from None


def _seconds(text: str) -> float:
    seconds = seconds_of(text)
    if seconds <= 0:
        raise BadRequest(f"--timeout: must be more than nothing, is {text!r}")
    return seconds


def _served(file: Path | None, filters: Sequence[SeedFilter]) -> Sequence[SchedulingProfile]:
    return profiles_of(file, [each.name for each in filters]) if file is not None else ()


def _filters() -> Sequence[SeedFilter]:
    """The users' own filters, as the scheduler loads them."""
    from gardenbus.scheduling.installed_filters import load_filters  # noqa: PLC0415  half a second that other commands need not pay

    return load_filters()
