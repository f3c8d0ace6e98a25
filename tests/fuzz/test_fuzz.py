"""A few thousand inputs of the fuzzer, of which `make fuzz` runs as many as are wanted."""

from pathlib import Path

import pytest

from tests.fuzz.__main__ import TARGETS, arguments_of
from tests.fuzz.command_line import fuzz_command_line
from tests.fuzz.findings import Findings, growth
from tests.fuzz.generator import WEIGHTS, Generator
from tests.fuzz.process import Fuzzer, stored_world
from tests.fuzz.targets import Targets

INPUTS = 5_000
FILES = 30


def test_inputs_in_process_are_taken_or_rejected() -> None:
    findings = Fuzzer(seed=7).run(range(INPUTS))
    assert findings.found == {}, "\n".join(findings.lines())
    assert findings.outcomes["taken"] > INPUTS / 5
    assert len(findings.outcomes) > 4


def test_a_seed_and_a_number_repeat_an_input() -> None:
    one, other = Fuzzer(seed=7), Fuzzer(seed=7)
    assert [one.sample(number) for number in range(30)] == [other.sample(number) for number in reversed(range(30))][
        ::-1
    ]
    assert one.sample(3) != Fuzzer(seed=8).sample(3)


def test_all_targets_are_drawn_and_something_is_taken_of_each() -> None:
    world, stored = stored_world()
    targets, generator = Targets(world), Generator(stored, stored, seed=1)
    taken = {given.target for given in map(generator.input, range(2_500)) if targets.run(given) == "taken"}
    assert taken >= WEIGHTS.keys() - {"configuration", "bind"}


def test_an_exception_that_is_no_rejection_is_found_with_its_input(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(document: object) -> object:
        raise KeyError("spec")

    monkeypatch.setattr("tests.fuzz.targets.key_of", broken)
    findings = Fuzzer(seed=7).run(range(300))
    (finding,) = findings.found.values()
    assert finding.what == "KeyError: 'spec'"
    assert f"number {finding.number}" in "\n".join(findings.lines())


def test_the_command_line_ends_as_it_should_whatever_is_in_a_file(tmp_path: Path) -> None:
    findings = fuzz_command_line(tmp_path, FILES, seed=7)
    assert findings.found == {}, "\n".join(findings.lines())
    assert findings.outcomes["taken"]
    assert findings.outcomes["exit 2"]


def test_manifests_that_are_nested_too_deeply_for_yaml_are_written_as_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nested: list[object] = []
    for _ in range(900):
        nested = [nested]
    deep = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "deep"}, "data": nested}
    monkeypatch.setattr("tests.fuzz.command_line.mutated", lambda _template, _chance: deep)  # pyright: ignore[reportUnknownArgumentType, reportUnknownLambdaType]
    findings = fuzz_command_line(tmp_path, 12, seed=7)
    assert findings.found == {}, "\n".join(findings.lines())
    assert findings.inputs == 12


def test_growth_is_that_of_the_later_part_of_a_run() -> None:
    assert growth([10, 50, 90, 90, 90, 90, 90, 90, 90]) == 0
    assert growth([10, 20, 30, 40, 50, 60, 70, 80, 90]) > 0
    assert growth([]) == 0


def test_findings_of_processes_are_added_up() -> None:
    one, other = Findings(inputs=3, seconds=2, slowest=(0.5, 1)), Findings(inputs=4, seconds=3, slowest=(0.7, 5))
    for findings in (one, other):
        findings.outcomes["taken"] = 2
        try:
            int("a")
        except ValueError as error:
            findings.add_exception(error, findings.inputs, "x")
    one.add_all(other)
    assert (one.inputs, one.seconds, one.slowest, one.outcomes["taken"]) == (7, 3, (0.7, 5), 4)
    (finding,) = one.found.values()
    assert (finding.number, one.times[finding.place]) == (3, 2)


@pytest.mark.parametrize(
    ("words", "targets"), [([], TARGETS), (["--seed", "3"], TARGETS), (["cli", "wire"], ("cli", "wire"))]
)
def test_all_is_fuzzed_unless_something_is_named(words: list[str], targets: tuple[str, ...]) -> None:
    assert tuple(arguments_of(words).targets) == targets


def test_what_is_no_target_is_rejected_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        arguments_of(["bus"])
    assert "bus is none of process, tenants, wire, cli, roles" in capsys.readouterr().err
