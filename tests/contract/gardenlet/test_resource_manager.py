"""The gardenlet that holds a seed's Lease is its resource manager, and no other."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from gardenbus.common.api.document import Document
from tests.support.eventually import eventually
from tests.support.gardenlets import Garden, a_configuration
from tests.support.resource_managers import Managed, ShootsOfSeed, a_config_map, with_stub_kubeconfigs
from tests.support.stub_kubernetes import StubKubernetes, a_stub_kubernetes


@pytest.fixture
async def seed(monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[StubKubernetes]:
    async with a_stub_kubernetes() as stub:
        with_stub_kubeconfigs(stub, monkeypatch)
        yield stub


def with_extensions(**extensions: str) -> Document:
    return a_configuration(backend={"extensions": {"kubeconfig": "seed.kubeconfig", **extensions}})


async def until_there(seed: StubKubernetes, name: str) -> None:
    async def there() -> None:
        assert seed.get("ConfigMap", "target", name)

    await eventually(there, every=0.02)


async def test_a_standby_acts_once_the_active_gardenlet_is_gone(
    garden: Garden, seed: StubKubernetes, tmp_path: Path
) -> None:
    managed = Managed(seed, ShootsOfSeed({}))
    first = await garden.start(with_extensions(), directory=tmp_path / "one")
    await garden.until_ready()
    managed.bundle("first", a_config_map("one"))
    await until_there(seed, "one")
    second = await garden.start(with_extensions(), directory=tmp_path / "two")
    assert not second.gardenlets["aws-eu1"].is_active
    await garden.stop(first)
    managed.bundle("second", a_config_map("two"))
    await until_there(seed, "two")
    assert second.gardenlets["aws-eu1"].is_active


@pytest.mark.parametrize("configuration", [a_configuration(), with_extensions(resourceManager="external")])
async def test_nothing_is_requested_where_the_gardenlet_is_no_resource_manager(
    garden: Garden, seed: StubKubernetes, configuration: Document
) -> None:
    Managed(seed, ShootsOfSeed({})).bundle("first", a_config_map("one"))
    await garden.start(configuration)
    await garden.until_ready()
    await garden.place()
    await garden.until_state("Succeeded")
    assert seed.requests == []
