"""Whatever a shoot is named, its files are below the gardenlet's directory."""

from pathlib import Path

import pytest

from gardenbus.agent.files import path_inside
from gardenbus.common.errors import BadRequest


@pytest.mark.parametrize("name", ["", ".", "..", "/etc", "a/b", "../a", "a\0"])
def test_a_name_that_leads_elsewhere_is_none_of_a_file(tmp_path: Path, name: str):
    with pytest.raises(BadRequest, match="no name of a file"):
        path_inside(tmp_path, "dev", name)


def test_an_ordinary_name_is_below_the_directory(tmp_path: Path):
    assert path_inside(tmp_path, "dev", "a..b.json") == tmp_path / "dev" / "a..b.json"
