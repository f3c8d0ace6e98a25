"""What `doctor` says about stored objects that break a rule."""

import pytest

from gardenbus.cli.diagnostics.rules import MOST_RULES, BrokenFieldRule, assess_stored


def broken(objects: int, field: str = "spec.purpose") -> BrokenFieldRule:
    return BrokenFieldRule(
        field, "must be one of some", objects, [f"garden-dev/{number}" for number in range(objects)][:5]
    )


def test_where_all_keep_the_rules_it_says_how_many_were_checked() -> None:
    (finding,) = assess_stored({}, 184, is_whole=True)
    assert (finding.state, finding.found) == ("ok", "184 stored objects break no rule")


def test_each_rule_has_its_finding_the_most_frequent_first() -> None:
    rules = {("seed", "spec.taints[].key"): broken(1, "spec.taints[].key"), ("shoot", "spec.purpose"): broken(7)}
    first, second = assess_stored(rules, 20, is_whole=True)
    assert first.found == (
        "shoot spec.purpose: 7 stored objects against a rule by now, as garden-dev/0, garden-dev/1, garden-dev/2,"
        " garden-dev/3, garden-dev/4 (must be one of some)"
    )
    assert second.found.startswith("seed spec.taints[].key: 1 stored object against a rule by now, as garden-dev/0 (")
    assert {first.state, second.state} == {"warning"}
    assert "changed elsewhere" in first.suggestion


def test_rules_beyond_the_most_are_counted() -> None:
    rules = {("shoot", f"spec.field{number}"): broken(1) for number in range(MOST_RULES + 3)}
    findings = assess_stored(rules, 30, is_whole=True)
    assert len(findings) == MOST_RULES + 1
    assert findings[-1].found == "3 rules more are broken"


@pytest.mark.parametrize("rules", [{}, {("shoot", "spec.purpose"): broken(1)}])
def test_what_was_not_checked_in_time_is_said(rules: dict[tuple[str, str], BrokenFieldRule]) -> None:
    assert "none was checked within 10 s" in assess_stored(rules, 5_000, is_whole=False)[-1].found
