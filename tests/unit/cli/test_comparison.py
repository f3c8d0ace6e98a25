"""Two profiles on one landscape: the shoots that differ, and stats of both outcomes."""

from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from gardenbus.cli.commands.groups import simulate
from gardenbus.cli.simulate.comparison import COST_PER_HOUR, OtherSeed, compare_profiles
from gardenbus.cli.simulate.profiles import profiles_for
from gardenbus.common.api.document import Document
from gardenbus.common.api.garden.scheduling_profiles import SchedulingProfile
from tests.support.builders import a_cloudprofile, a_project, a_seed, a_shoot

COSTS = {"a": "0.50", "b": "1.25"}


def a_profile(name: str) -> tuple[str, SchedulingProfile]:
    found = profiles_for(name, (), (), "SameRegion").for_all
    assert found is not None
    return name, found


def a_landscape(shoots: int = 4) -> list[Document]:
    seeds = [a_seed(name, shoots="10", metadata={"annotations": {COST_PER_HOUR: cost}}) for name, cost in COSTS.items()]
    return [a_project(), a_cloudprofile(), *seeds, *(a_shoot(f"shoot-{number}") for number in range(shoots))]


def test_packing_uses_fewer_seeds_and_costs_less_than_spreading() -> None:
    found = compare_profiles(a_landscape(), a_profile("spread"), a_profile("binpack"))
    spread, packed = found.first, found.second
    assert (spread.seeds_in_use, packed.seeds_in_use, spread.seeds) == (2, 1, 2)
    assert (spread.least_used, spread.median_used, spread.most_used) == (20, 20, 20)
    assert (packed.least_used, packed.median_used, packed.most_used) == (0, 20, 40)
    assert (spread.worst_skew, spread.skewed) == (0, "")
    assert (packed.worst_skew, packed.skewed) == (4, "garden-dev")
    assert (spread.cost_a_month, packed.cost_a_month) == (1.75 * 730, 0.5 * 730)
    assert found.shoots == (
        OtherSeed("garden-dev/shoot-1", "b", "a"),
        OtherSeed("garden-dev/shoot-3", "b", "a"),
    )


def test_the_same_profile_twice_differs_in_nothing() -> None:
    found = compare_profiles(a_landscape(25), a_profile("spread"), a_profile("spread"))
    assert found.shoots == ()
    assert found.first == found.second
    assert found.first.without_seed == 5


def test_seeds_without_a_limit_or_a_cost_have_no_stats_of_it() -> None:
    documents = [a_project(), a_cloudprofile(), a_seed("a", shoots=None), a_shoot()]
    stats = compare_profiles(documents, a_profile("spread"), a_profile("binpack")).first
    assert (stats.least_used, stats.median_used, stats.most_used, stats.cost_a_month) == (
        None,
        None,
        None,
        None,
    )
    assert (stats.seeds_in_use, stats.without_seed) == (1, 0)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "landscape.yaml"
    path.write_text(yaml.safe_dump_all(a_landscape()))
    return path


def test_the_command_shows_figures_and_shoots(file: Path) -> None:
    shown = CliRunner().invoke(simulate, ["compare", "--profile", "spread", "--profile", "binpack", str(file)])
    assert shown.exit_code == 0, shown.output
    for text in ("seeds in use", "2/2", "1/2", "0%/20%/40%", "4 (garden-dev)", "365.00", "2 shoots go elsewhere"):
        assert text in shown.output
    named = CliRunner().invoke(
        simulate, ["compare", "--profile", "spread", "--profile", "binpack", str(file), "-o", "name"]
    )
    assert named.output.split() == ["garden-dev/shoot-1", "garden-dev/shoot-3"]


@pytest.mark.parametrize("profiles", [["spread"], ["spread", "binpack", "spread"], ["spread", "none"]])
def test_other_than_two_profiles_that_there_are_is_rejected(file: Path, profiles: list[str]) -> None:
    words = [word for each in profiles for word in ("--profile", each)]
    shown = CliRunner().invoke(simulate, ["compare", *words, str(file)])
    assert shown.exit_code != 0
    assert "--profile" in shown.output
