"""What the guard reports of each result, and the page that it writes."""

from pathlib import Path

import msgspec
import pytest

from gardenbus.bench.guard.__main__ import BASELINE, PAGE
from gardenbus.bench.guard.assessment import Held, MeasuredNothing, NotMeasurable, assess
from gardenbus.bench.guard.baseline import decode
from gardenbus.bench.guard.page import BEGIN, END, TARGETS, is_met, tables, with_tables
from gardenbus.bench.guard.report import result_text, summary
from tests.unit.bench.guard.readings import CPU_US, a_reading, a_turn, the_baseline

ROOT = Path(__file__).parents[4]
BAD = {**CPU_US, "apiserver": 700.0}


def test_a_loss_names_process_and_functions_beside_the_last_good_ones() -> None:
    good = a_reading(functions={"apiserver": {"admit": 5.0}})
    bad = a_reading(a_turn(BAD), functions={"apiserver": {"admit": 5.0, "burn": 2.0}})
    bad = msgspec.structs.replace(bad, counts={"nats_in_msgs": 4.0}, bare=a_turn())
    baseline = the_baseline(good)
    text = result_text(assess(bad, baseline), bad, baseline)
    assert "intake: LOST since 0123456789ab" in text
    assert "apiserver: 700.0 µs of CPU per shoot, last good 500.0 (+40%)" in text
    assert [line.split()[0] for line in text.splitlines() if line.startswith("    ")][1] == "burn"
    assert "nats_in_msgs per shoot: 4.0, last good 0.0" in text
    assert "of the bare pipe 0.81 by CPU" in text


def test_what_is_not_measurable_says_by_how_much_the_yardstick_varied() -> None:
    text = result_text(NotMeasurable("intake", "redis", 0.5, 0.2), a_reading(), the_baseline())
    assert text == "intake: not measurable here: the yardstick varied by 50% (redis), others took 20% of the cores"


def test_a_landscape_at_rest_is_reported_by_its_part_of_a_core() -> None:
    turn = a_turn({"relay": 5000.0}, units=30, seconds=30.0)
    reading = a_reading(turn, scenario="at rest", unit="second")
    text = result_text(Held("at rest"), reading, the_baseline(reading))
    assert text == "at rest: held. 0.5% of a core, all processes together"


def test_what_measured_nothing_says_why() -> None:
    text = result_text(MeasuredNothing("intake", "relay died"), a_reading(), the_baseline())
    assert text == "intake: MEASURED NOTHING: relay died"


def test_the_summary_counts_each_result() -> None:
    results = [Held("a"), Held("b"), NotMeasurable("c", "nats", 0.4), MeasuredNothing("d", "")]
    assert summary(results) == "2 held, 1 not measurable, 1 measured nothing"


def test_the_page_has_one_commit_and_says_which_targets_are_missed() -> None:
    reading = msgspec.structs.replace(a_reading(), bare=a_turn(seconds=1.0))
    baseline = the_baseline(reading)
    text = tables(baseline)
    assert "commit `0123456789abcdef`" in text
    (row,) = [line for line in text.splitlines() if line.startswith("| intake, ")]
    assert "**missed**" in row
    assert is_met(TARGETS["intake"], baseline.scenarios["intake"]) is False


def test_a_page_without_a_place_for_tables_is_an_error() -> None:
    with pytest.raises(ValueError, match="no lines"):
        with_tables("# How fast it is\n", the_baseline())


def test_the_tables_replace_those_before_and_nothing_else() -> None:
    page = with_tables(f"above\n{BEGIN}\nold\n{END}\nbelow\n", the_baseline())
    assert page.startswith("above\n")
    assert page.endswith("below\n")
    assert "old" not in page
    assert with_tables(page, the_baseline()) == page


def test_the_page_is_what_the_figures_make_of_it() -> None:
    text = (ROOT / PAGE).read_text(encoding="utf-8")
    assert with_tables(text, decode(BASELINE.read_bytes())) == text, "run: python -m gardenbus.bench.guard --page"
