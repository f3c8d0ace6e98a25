"""Names that may be meant, where an object is not there."""

import pytest

from gardenbus.cli.client.api_error import ApiError
from gardenbus.cli.client.resource_args import get_object, parse_resource
from gardenbus.common.errors import NotFound
from tests.support.builders import a_seed, a_shoot
from tests.support.fake_api import FakeApi


@pytest.fixture
def api() -> FakeApi:
    return FakeApi(a_seed("aws-dublin"), a_seed("aws-cork"), a_shoot("apollo"), a_shoot("apolla", "garden-other"))


async def test_a_name_that_is_mistyped_brings_the_one_that_may_be_meant(api: FakeApi) -> None:
    with pytest.raises(ApiError, match=r"^seed aws-dubln not found; did you mean aws-dublin\?$") as raised:
        await get_object(api.api, parse_resource(["seed"]), "aws-dubln", None)
    assert raised.value.error["code"] == 404
    with pytest.raises(ApiError, match=r"did you mean apollo\?$"):
        await get_object(api.api, parse_resource(["shoot"]), "apolo", "garden-dev")
    with pytest.raises(NotFound, match=r"^shoot apollx not found in any namespace; did you mean apoll[ao]\?$"):
        await get_object(api.api, parse_resource(["shoot"]), "apollx", None)


@pytest.mark.parametrize("name", ["gcp-iowa", "aws-virginia", "x"])
async def test_a_name_like_no_other_brings_none(api: FakeApi, name: str) -> None:
    with pytest.raises(ApiError, match=rf"^seed {name} not found$"):
        await get_object(api.api, parse_resource(["seed"]), name, None)
