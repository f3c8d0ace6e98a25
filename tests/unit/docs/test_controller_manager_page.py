"""What the page about the controller manager shows is accepted, and its defaults are those of the code."""

import re
from pathlib import Path

import pytest
import yaml

from gardenbus.apiserver.domain.validation.manifest import validate
from gardenbus.common.api.configuration.controller_manager import (
    ControllerManagerConfiguration,
    parse_controller_manager,
)

PAGE = (Path(__file__).parents[3] / "docs" / "controller-manager.md").read_text()
SHOOTS, CONFIGURATIONS = (
    [block for block in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL) if f"kind: {kind}\n" in block]
    for kind in ("Shoot", "ControllerManagerConfiguration")
)


@pytest.mark.parametrize("block", SHOOTS)
def test_the_shoots_are_valid(block: str) -> None:
    validate(yaml.safe_load(block), None)


def test_the_configuration_shows_the_defaults() -> None:
    (block,) = CONFIGURATIONS
    assert parse_controller_manager(block) == ControllerManagerConfiguration()


def test_each_section_that_is_read_is_shown() -> None:
    (block,) = CONFIGURATIONS
    shown = {re.sub("[A-Z]", lambda each: f"_{each[0].lower()}", name) for name in yaml.safe_load(block)["controllers"]}
    existing = {
        name
        for name in ControllerManagerConfiguration.__struct_fields__
        if name.startswith(("shoot", "bastion", "plant"))
    }
    assert shown == existing
