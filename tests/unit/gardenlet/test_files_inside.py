"""Whatever a shoot is named, its files are below the gardenlet's directory, and nobody else's to read."""

import os
from pathlib import Path

import pytest

from gardenbus.agent.files import path_inside
from gardenbus.common.errors import BadRequest
from gardenbus.gardenlet.backend.buckets import BucketDirectory
from gardenbus.gardenlet.backend.holder_identity import HolderIdentity
from gardenbus.gardenlet.backend.local_files import LocalFiles
from gardenbus.gardenlet.backend.port import FencingToken
from gardenbus.gardenlet.domain.shoot_record import ShootRecord
from tests.support.files import open_to_others


@pytest.mark.parametrize("name", ["", ".", "..", "/etc", "a/b", "../a", "a\0"])
def test_a_name_that_leads_elsewhere_is_none_of_a_file(tmp_path: Path, name: str):
    with pytest.raises(BadRequest, match="no name of a file"):
        path_inside(tmp_path, "dev", name)


def test_an_ordinary_name_is_below_the_directory(tmp_path: Path):
    assert path_inside(tmp_path, "dev", "a..b.json") == tmp_path / "dev" / "a..b.json"


def test_the_files_of_a_seed_are_for_their_owner_alone_whatever_the_mask_is(tmp_path: Path):
    files = LocalFiles(tmp_path / "gardenlets/a-seed")
    before = os.umask(0)
    try:
        files.open()
        assert files.acquire(FencingToken(1, 1))
        files.save(ShootRecord(namespace="garden-dev", name="apollo", uid="u"))
        BucketDirectory(files.directory / "buckets", files.owned).make("backup")
        HolderIdentity(files.directory / "holders").release()
    finally:
        os.umask(before)
        files.close()

    assert open_to_others(tmp_path / "gardenlets") == []
