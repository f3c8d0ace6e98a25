from pathlib import Path

import pytest

from gardenbus.common.errors import SettingsInvalid
from gardenbus.scheduler.settings import load_settings

HEAD = "apiVersion: scheduler.config.gardener.cloud/v1alpha1\nkind: SchedulerConfiguration\n"


def written(folder: Path, text: str) -> str:
    file = folder / "scheduler.yaml"
    file.write_text(text)
    return str(file)


def test_the_file_and_the_environment_are_read(tmp_path: Path) -> None:
    file = written(tmp_path, HEAD + "logLevel: debug\nschedulers: {shoot: {schedulerName: mine}}\n")
    settings = load_settings(["--config", file], {"GARDENBUS_PREFIX": "other"})
    assert (settings.prefix, settings.configuration.scheduler_name, settings.log_level) == ("other", "mine", "debug")
    settings = load_settings([f"--config={file}"], {"GARDENBUS_LOG_LEVEL": "warning"})
    assert settings.log_level == "warning"


@pytest.mark.parametrize("arguments", [[], ["--config"], ["--strategy", "SameRegion"], ["--config", "a", "b"]])
def test_the_file_is_mandatory_and_the_only_option(arguments: list[str]) -> None:
    with pytest.raises(SettingsInvalid, match="--config FILE"):
        load_settings(arguments, {})


def test_a_file_that_is_not_there_or_wrong_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsInvalid, match=r"nowhere\.yaml"):
        load_settings(["--config", str(tmp_path / "nowhere.yaml")], {})
    with pytest.raises(SettingsInvalid, match="strategies: no such field"):
        load_settings(["--config", written(tmp_path, HEAD + "strategies: []\n")], {})
