"""Figures that only fall, unless a reason stands beside them."""

import itertools
import subprocess
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gardenbus.bench.guard.__main__ import BASELINE, main
from gardenbus.bench.guard.baseline import NOISE, Baseline, FigureRejected, accepted, decode, encode, unexplained
from tests.unit.bench.guard.readings import CPU_US, a_reading, a_turn, the_baseline

ROOT = Path(__file__).parents[4]


def with_apiserver(factor: float) -> Baseline:
    return the_baseline(a_reading(a_turn({**CPU_US, "apiserver": factor * CPU_US["apiserver"]})))


def cpu(baseline: Baseline) -> float:
    return baseline.scenarios["intake"].processes["apiserver"].cpu


def test_the_first_figures_are_accepted_as_they_are() -> None:
    assert accepted(None, the_baseline(), "") == the_baseline()


def test_a_figure_falls_when_less_is_measured() -> None:
    assert cpu(accepted(the_baseline(), with_apiserver(0.8), "")) == pytest.approx(4.0)


@given(factor=st.floats(min_value=1 - 0.9 * NOISE, max_value=1 + 0.9 * NOISE))
def test_what_is_within_noise_changes_nothing(factor: float) -> None:
    assert cpu(accepted(the_baseline(), with_apiserver(factor), "")) == cpu(the_baseline())


def test_a_figure_that_rises_without_a_reason_is_rejected_by_name() -> None:
    with pytest.raises(FigureRejected, match=r"intake, apiserver, cpu: 5 → 6") as rejected:
        accepted(the_baseline(), with_apiserver(1.2), "")
    assert [each.process for each in rejected.value.raised] == ["apiserver"]


def test_a_figure_rises_with_a_reason_that_stands_beside_it() -> None:
    baseline = accepted(the_baseline(), with_apiserver(1.2), "plug-ins validate workers")
    assert cpu(baseline) == pytest.approx(6.0)
    assert baseline.scenarios["intake"].processes["apiserver"].raised == {"cpu": "plug-ins validate workers"}
    assert not baseline.scenarios["intake"].processes["relay"].raised
    assert not unexplained(the_baseline(), baseline)


def test_a_reason_stays_while_its_figure_does_and_goes_when_it_falls() -> None:
    raised = accepted(the_baseline(), with_apiserver(1.2), "bought")
    kept = accepted(raised, with_apiserver(1.21), "")
    assert kept.scenarios["intake"].processes["apiserver"].raised == {"cpu": "bought"}
    fallen = accepted(raised, with_apiserver(0.9), "")
    assert not fallen.scenarios["intake"].processes["apiserver"].raised


def test_a_figure_does_not_rise_twice_for_one_reason() -> None:
    raised = accepted(the_baseline(), with_apiserver(1.2), "bought")
    with pytest.raises(FigureRejected):
        accepted(raised, with_apiserver(1.5), "bought")
    assert accepted(raised, with_apiserver(1.5), "bought more")


def test_a_scenario_that_is_no_more_has_no_figures_of_an_older_commit() -> None:
    both = the_baseline(a_reading(), a_reading(scenario="stream"))
    assert set(accepted(both, the_baseline(), "").scenarios) == {"intake"}


@pytest.mark.parametrize("arguments", [["--because", "x"], ["--accept", "--only", "rest"], ["--only", "nothing"]])
def test_options_that_do_not_go_together_are_rejected_before_anything_is_measured(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2


def test_a_file_that_is_no_baseline_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "baseline.json"
    file.write_text("{}")
    with pytest.raises(SystemExit):
        main(["--baseline", str(file)])
    assert "commit" in capsys.readouterr().err


def test_a_figure_raised_by_hand_is_noticed() -> None:
    assert [str(each) for each in unexplained(the_baseline(), with_apiserver(1.01))] == [
        "intake, apiserver, cpu: 5 → 5.05"
    ]


def test_the_file_reads_back_and_names_a_field_that_is_wrong() -> None:
    assert decode(encode(the_baseline())) == the_baseline()
    with pytest.raises(msgspec.ValidationError, match="commit"):
        decode(b"{}")


def versions() -> list[Baseline]:
    """Versions of the file in the history, the oldest first, and the one in the tree."""
    file = str(BASELINE.relative_to(ROOT))
    log = subprocess.run(
        ["git", "log", "-n", "30", "--format=%H", "--", file], cwd=ROOT, capture_output=True, text=True, check=False
    )
    found: list[Baseline] = []
    for commit in reversed(log.stdout.split()):
        shown = subprocess.run(["git", "show", f"{commit}:{file}"], cwd=ROOT, capture_output=True, check=False)
        if shown.returncode == 0:
            found.append(decode(shown.stdout))
    return [*found, decode(BASELINE.read_bytes())]


def test_no_figure_in_the_history_rose_without_a_reason() -> None:
    found = versions()
    for before, now in itertools.pairwise(found):
        assert not [str(each) for each in unexplained(before, now)]


def test_the_figures_have_every_scenario_and_process_of_the_guard() -> None:
    baseline = decode(BASELINE.read_bytes())
    scenarios = {"intake", "scheduling", "stream", "one order alone", "placement", "at rest"}
    assert scenarios <= set(baseline.scenarios)
    servers = {"nats", "redis", "relay"}
    expected = {
        "intake": {"apiserver"},
        "scheduling": {"scheduler", "apiserver"},
        "stream": {"scheduler", "apiserver"},
        "one order alone": {"scheduler", "apiserver"},
        "placement": {"placement"},
    }
    for scenario, services in expected.items():
        assert set(baseline.scenarios[scenario].processes) == servers | services
    at_rest = set(baseline.scenarios["at rest"].processes)
    assert {*servers, "up", "identity", "apiserver", "gardenlet", "lifecycle", "dashboard"} <= at_rest
