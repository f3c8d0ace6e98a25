"""What docs/projects.md says is what the code does."""

import re
from pathlib import Path

import msgspec
import yaml

from gardenbus.common.api.configuration.controller_manager import (
    DEFAULT_CONCURRENT_SYNCS,
    ControllerManagerConfiguration,
    EventConfiguration,
    ProjectControllerConfiguration,
    parse_controller_manager,
)
from gardenbus.controllermanager.controllers import credentials, protection
from gardenbus.controllermanager.domain.projects import quota_of

PAGE = (Path(__file__).parents[3] / "docs" / "projects.md").read_text()


def test_the_configuration_on_the_page_holds_the_defaults_but_for_its_quotas() -> None:
    (block,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    configuration = parse_controller_manager(block)
    assert msgspec.structs.replace(configuration.project, quotas=None) == ProjectControllerConfiguration()
    assert set(configuration.concurrent_syncs.values()) == {DEFAULT_CONCURRENT_SYNCS}
    assert set(configuration.concurrent_syncs) == {"seedreference", *(loop.kind for loop in protection.LOOPS)}
    assert set(yaml.safe_load(block)["controllers"]) >= {"project", "quota"}
    assert configuration.event == EventConfiguration()
    assert configuration.ignored == ControllerManagerConfiguration().ignored
    assert configuration.project.quotas is not None
    small, rest = configuration.project.quotas
    assert quota_of({"size": "small"}, (small, rest)) is small
    assert quota_of({}, (small, rest)) is rest


def test_every_kind_that_is_kept_is_named() -> None:
    text = PAGE.lower()
    for loop in (*protection.LOOPS, *credentials.LOOPS):
        plural = f"{loop.kind[:-1]}ies" if loop.kind.endswith("y") else loop.kind
        assert plural in text, loop.kind
