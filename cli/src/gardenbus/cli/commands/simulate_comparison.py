"""`simulate compare`: two profiles on the same files."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from gardenbus.cli.commands.options import Output
from gardenbus.cli.commands.simulate_files import Strategy
from gardenbus.cli.manifests.files import read_files
from gardenbus.cli.output.console import PROGRAMS, Format, exit_codes, new_table, show_document, show_lines, show_rows
from gardenbus.common.errors import BadRequest

if TYPE_CHECKING:
    from gardenbus.cli.simulate.comparison import ProfileComparison, ProfileStats
    from gardenbus.common.api.garden.scheduling_profiles import SchedulingProfile

_TWO = 2


def compare(
    files: Annotated[list[Path], typer.Argument(help="Manifests of one landscape, files or folders.", metavar="FILE…")],
    *,
    profile: Annotated[
        list[str],
        typer.Option(help="A profile, as of simulate landscapes; given twice.", metavar="NAME"),
    ],
    strategy: Annotated[
        Strategy | None,
        typer.Option(help="That of profiles that state none (default: as a SchedulerConfiguration, or SameRegion)."),
    ] = None,
    output: Output = Format.TABLE,
) -> None:
    """Compare two profiles offline: the shoots that go elsewhere by the second one, and stats of both.

    All shoots without a seed are placed by the one, and again by the other, in the order of the files.

    Example: gardenbus simulate compare --profile spread --profile binpack examples/landscape
    """
    from gardenbus.cli.simulate.comparison import compare_profiles  # noqa: PLC0415  others need not pay for it
    from gardenbus.cli.simulate.profiles import profiles_for  # noqa: PLC0415  as above
    from gardenbus.cli.simulate.ready_seeds import strategy_in, with_ready_seeds  # noqa: PLC0415  as above
    from gardenbus.scheduling.installed_filters import load_filters  # noqa: PLC0415  as above

    with exit_codes():
        if len(profile) != _TWO:
            raise BadRequest(f"--profile: two profiles are compared, {len(profile)} are named: give the option twice")
        documents, filters = read_files(files), load_filters()
        chosen = str(strategy or strategy_in(documents) or Strategy.SAME_REGION)
        named: list[tuple[str, SchedulingProfile]] = []
        for word in profile:
            found = profiles_for(word, documents, [each.name for each in filters], chosen).for_all
            assert found is not None, "a name is a profile, or rejected"
            named.append((word, found))
        _show(
            compare_profiles(with_ready_seeds(documents), named[0], named[1], strategy=chosen, filters=filters), output
        )


def _show(comparison: "ProfileComparison", output: Format) -> None:
    if output in PROGRAMS:
        show_document(msgspec.to_builtins(comparison), output)
        return
    if output is Format.NAME:
        show_lines([each.shoot for each in comparison.shoots])
        return
    first, second = comparison.first, comparison.second
    table = new_table("STAT", first.profile, second.profile)
    for (name, one), (_, other) in zip(_rows(first), _rows(second), strict=True):
        table.add_row(name, one, other)
    show_rows(table)
    show_lines(["", f"{len(comparison.shoots)} shoots go elsewhere"])
    if comparison.shoots:
        differing = new_table("SHOOT", first.profile, second.profile)
        for each in comparison.shoots:
            differing.add_row(each.shoot, each.first or "<none>", each.second or "<none>")
        show_rows(differing)


def _rows(stats: "ProfileStats") -> list[tuple[str, str]]:
    shares = (stats.least_used, stats.median_used, stats.most_used)
    skew = f"{stats.worst_skew} ({stats.skewed})" if stats.worst_skew else "0"
    return [
        ("shoots without a seed", str(stats.without_seed)),
        ("seeds in use", f"{stats.seeds_in_use}/{stats.seeds}"),
        ("used, least/median/most", "/".join("-" if each is None else f"{each}%" for each in shares)),
        ("worst skew of a project", skew),
        ("cost a month", "not stated" if stats.cost_a_month is None else f"{stats.cost_a_month:,.2f}"),
    ]
