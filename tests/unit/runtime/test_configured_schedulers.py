"""SchedulerConfigurations that other services read, to decide as schedulers do."""

import os
from pathlib import Path

import pytest

from gardenbus.common.errors import SettingsInvalid
from gardenbus.common.runtime.configuration_file import read_profiles

HEAD = "apiVersion: scheduler.config.gardener.cloud/v1alpha1\nkind: SchedulerConfiguration\n"


def written(folder: Path, name: str, text: str) -> str:
    file = folder / name
    file.write_text(HEAD + text)
    return str(file)


def test_each_file_gives_its_profiles_and_one_without_profiles_its_strategy(tmp_path: Path) -> None:
    scored = written(tmp_path, "a.yaml", "profiles: [{preset: spread}, {schedulerName: cheap, preset: binpack}]")
    plain = written(tmp_path, "b.yaml", "schedulers: {shoot: {schedulerName: mine}}")

    found = read_profiles(os.pathsep.join((scored, plain)))

    assert [(each.scheduler_name, bool(each.scores)) for each in found] == [
        ("default-scheduler", True),
        ("cheap", True),
        ("mine", False),
    ]


def test_without_files_there_are_none() -> None:
    assert read_profiles("") == ()


def test_all_problems_are_listed_with_their_files(tmp_path: Path) -> None:
    wrong = written(tmp_path, "wrong.yaml", "profiles: [{preset: quick}]")
    one, other = (written(tmp_path, name, "") for name in ("one.yaml", "other.yaml"))

    with pytest.raises(SettingsInvalid) as rejected:
        read_profiles(os.pathsep.join((wrong, one, other, str(tmp_path / "absent.yaml"))))

    problems = "\n".join(rejected.value.problems)
    assert f"{wrong}: profiles[0].preset" in problems
    assert f"{other}: the scheduler default-scheduler is configured twice" in problems
    assert "absent.yaml" in problems
