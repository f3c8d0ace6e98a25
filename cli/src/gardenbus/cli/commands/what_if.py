"""`simulate` with changes: what would be if there were other seeds, other shoots, another strategy."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import msgspec
import typer
from rich.text import Text

from gardenbus.cli import completions
from gardenbus.cli.client.resource_args import object_name
from gardenbus.cli.commands.options import LandscapeOptions, Output, run_with_client
from gardenbus.cli.commands.simulate_files import Profile, Strategy
from gardenbus.cli.manifests.files import read_files
from gardenbus.cli.output.console import Format, counted, exit_codes, new_table, printed, show_lines, show_rows
from gardenbus.common.api.document import section
from gardenbus.common.api.garden.unschedulable import brief_reason, full_reason
from gardenbus.common.errors import BadRequest

if TYPE_CHECKING:
    from gardenbus.cli.simulate.what_if import ShootChange, WhatIfChanges, WhatIfResult

SHOWN = 40
"""Rows of shoots that are shown before the rest is counted."""


class WhatIfOptions(NamedTuple):
    """The options of `simulate what-if`."""

    files: Annotated[
        list[Path] | None,
        typer.Option("-f", "--filename", help="Use the landscape in FILE or folder instead of the live one."),
    ] = None
    add_seed: Annotated[
        list[Path] | None, typer.Option(help="Add the Seeds of FILE, as ready ones.", metavar="FILE")
    ] = None
    remove_seed: Annotated[
        list[str] | None,
        typer.Option(
            help="Remove SEED; its shoots need another.",
            metavar="SEED",
            autocompletion=completions.seeds,
        ),
    ] = None
    cordon: Annotated[
        list[str] | None,
        typer.Option(help="Cordon SEED.", metavar="SEED", autocompletion=completions.seeds),
    ] = None
    shoots: Annotated[int, typer.Option(min=0, max=100_000, help="Add so many shoots, each like --like.")] = 0
    like: Annotated[
        str,
        typer.Option(
            help="The shoot that they are like: NAME or NAMESPACE/NAME.", autocompletion=completions.shoot_names
        ),
    ] = ""
    strategy: Annotated[Strategy | None, typer.Option(help="Use this strategy.")] = None
    profile: Profile = None
    show_all: Annotated[bool, typer.Option("--all", help="Show every shoot and seed, also unchanged seeds.")] = False
    output: Output = Format.TABLE


def what_if(*, options: WhatIfOptions, landscape: LandscapeOptions) -> None:
    """Say what a change would do to the live landscape, or to one in files; nothing is written anywhere.

    The shoots that wait are scheduled as it is and as it is supposed; shown is where both differ, and how full the
    seeds would be.

    Example: gardenbus simulate --cordon aws-eu1 --shoots 100 --like garden-dev/apollo
    Example: gardenbus simulate --add-seed new-seed.yaml --remove-seed aws-eu1
    """
    from gardenbus.cli.client.state_collector import current_documents  # noqa: PLC0415  as above
    from gardenbus.cli.simulate.profiles import profiles_for  # noqa: PLC0415  as above
    from gardenbus.cli.simulate.ready_seeds import ready_seeds_in, strategy_in, with_ready_seeds  # noqa: PLC0415  others need not pay for it
    from gardenbus.cli.simulate.what_if import WhatIfChanges, compare_schedules  # noqa: PLC0415  as above
    from gardenbus.scheduling.installed_filters import load_filters  # noqa: PLC0415  as above

    with exit_codes():
        if bool(options.shoots) != bool(options.like):
            raise BadRequest("--shoots and --like go together: so many more, like this one")
        changes = WhatIfChanges(
            added=tuple(ready_seeds_in(read_files(options.add_seed))) if options.add_seed else (),
            removed=tuple(object_name(seed, "seed") for seed in options.remove_seed or ()),
            cordoned=tuple(object_name(seed, "seed") for seed in options.cordon or ()),
            shoots=options.shoots,
            like=object_name(options.like, "shoot"),
            strategy=str(options.strategy) if options.strategy is not None else None,
        )
        filters = load_filters()
        given = read_files(options.files) if options.files else []
        documents, current = with_ready_seeds(given), strategy_in(given) or Strategy.SAME_REGION
    if not options.files:
        documents, current = run_with_client(current_documents, *landscape)
    with exit_codes():
        profiles = profiles_for(
            options.profile, given, [each.name for each in filters], str(options.strategy or current)
        )
        found = compare_schedules(documents, changes, strategy=str(current), filters=filters, profiles=profiles)
    places = [f"{change.shoot} {change.after or '-'}" for change in found.shoots]
    if not printed(options.output, msgspec.to_builtins(found), places):
        show_difference(
            found,
            changes,
            show_all=options.show_all,
            shorten=full_reason if options.output is Format.WIDE else brief_reason,
        )


def show_difference(
    found: "WhatIfResult", changes: "WhatIfChanges", *, show_all: bool, shorten: Callable[[str], str]
) -> None:
    """Print which shoots would be elsewhere and what `says` makes of reasons, and how full the seeds would be."""
    pending = f"{found.waiting_before} pending now, {found.waiting_after} then"
    show_lines([f"{_in_words(changes)}: {pending} (strategy {found.strategy})", ""])
    own, new = ([each for each in found.shoots if each.is_new is is_new] for is_new in (False, True))
    if own:
        _show_shoots(own if show_all else own[:SHOWN], shorten)
        if len(own) > SHOWN and not show_all:
            show_lines([f"and {len(own) - SHOWN} more (--all shows them)"])
    if new:
        _show_new(new, changes.like, shorten)
    if not found.shoots:
        show_lines(["no shoot would move"])
    changed = [seed for seed in found.seeds if show_all or seed.change or seed.used_before != seed.used_after]
    if changed:
        show_lines([""])
        table = new_table("SEED", "USED", "THEN", "ALLOCATABLE", "FILL", folded="CHANGE")
        for seed in changed:
            limit = "no limit" if seed.allocatable is None else str(seed.allocatable)
            table.add_row(
                seed.seed,
                _count(seed.used_before),
                _count(seed.used_after),
                limit,
                f"{_fill(seed.used_before, seed.allocatable)} → {_fill(seed.used_after, seed.allocatable)}",
                seed.change,
            )
        show_rows(table)
    show_lines(["", "dry run: nothing was changed"])


def _show_shoots(moved: "list[ShootChange]", shorten: Callable[[str], str]) -> None:
    table = new_table("SHOOT", "SEED", "THEN ON", folded="WHY NOT")
    for change in moved:
        why = Text(shorten(change.message or ""))
        table.add_row(change.shoot, change.before or "<none>", change.after or "<none>", why)
    show_rows(table)


def _show_new(moved: "list[ShootChange]", like: str, shorten: Callable[[str], str]) -> None:
    """The supposed shoots by where they would go: they are all alike."""
    table = new_table("NEW SHOOTS", "THEN ON", folded="WHY NOT")
    places = Counter((change.after or "", shorten(change.message or "")) for change in moved)
    for (seed, why), count in sorted(places.items(), key=lambda place: (not place[0][0], place[0])):
        table.add_row(f"{count} like {like}", seed or "<none>", Text(why))
    show_rows(table)


def _in_words(changes: "WhatIfChanges") -> str:
    added = [str(section(seed, "metadata").get("name")) for seed in changes.added]
    words = [
        *(f"{seed} added" for seed in added if seed not in changes.removed),
        *(f"{seed} replaced" for seed in added if seed in changes.removed),
        *(f"{seed} removed" for seed in changes.removed if seed not in added),
        *(f"{seed} cordoned" for seed in changes.cordoned),
    ]
    if changes.shoots:
        words.append(f"{counted(changes.shoots, 'more shoot')} like {changes.like}")
    if changes.strategy:
        words.append(f"strategy {changes.strategy}")
    if not words:
        return "without changes"
    return f"with {', '.join(words[:-1])} and {words[-1]}" if len(words) > 1 else f"with {words[0]}"


def _count(used: int | None) -> str:
    return "-" if used is None else str(used)


def _fill(used: int | None, allocatable: int | None) -> str:
    if used is None or allocatable is None:
        return "-"
    return f"{used / allocatable:.0%}" if allocatable else "full"
