"""A gardenlet in a shoot: what it inherits, where it is kept, and how long its certificate is good."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gardenbus.common.api.configuration.gardenlet import parse_configurations
from gardenbus.common.api.document import Document, encode
from gardenbus.gardenlet.backend.deployments import DeploymentStore
from gardenbus.gardenlet.backend.local_files import LocalFiles
from gardenbus.gardenlet.backend.port import FencingToken, StaleFencingToken
from gardenbus.gardenlet.domain.deployments import GardenletDeployment, managed_gardenlet_configuration, text_of
from tests.support.builders import a_seed, merged
from tests.support.gardenlets import a_configuration

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
DAY = timedelta(days=1)
DEPLOYED = GardenletDeployment(
    namespace="garden",
    shoot="field",
    managed_seed="grown",
    uid="u1",
    generation=1,
    bootstrapped_at=NOW,
    gardenlet={"kind": "GardenletConfiguration"},
)


def managed(parent: Document | None = None, **changes: Any) -> Document:
    managed_seed: Document = {
        "metadata": {"namespace": "garden", "name": "grown"},
        "spec": {"shoot": {"name": "field"}, "gardenlet": {"config": {"seedConfig": {"spec": a_seed()["spec"]}}}},
    }
    gardenlet: Document = {"spec": {"gardenlet": changes}}
    return managed_gardenlet_configuration(parent or a_configuration("host-seed"), merged(managed_seed, gardenlet))


def test_the_kubernetes_api_of_the_parents_seed_is_not_inherited() -> None:
    backend = {"type": "local", "extensions": {"kubeconfig": "seed.kubeconfig"}}
    parent = a_configuration("host-seed", backend=backend)
    assert "extensions" not in managed(parent)["backend"]
    own = {"extensions": {"kubeconfig": "own.kubeconfig"}}
    assert managed(parent, config={"backend": own})["backend"]["extensions"] == own["extensions"]


def test_the_parents_configuration_lies_below_the_childs() -> None:
    parent = a_configuration("host-seed", controllers={"shoot": {"concurrentSyncs": 7, "syncPeriod": "30m"}})
    merged_configuration = managed(parent, config={"controllers": {"shoot": {"concurrentSyncs": 3}}})

    assert merged_configuration["controllers"]["shoot"] == {"concurrentSyncs": 3, "syncPeriod": "30m"}
    assert merged_configuration["backend"] == parent["backend"]


def test_a_managed_gardenlet_has_its_own_seed_capacity_and_credentials() -> None:
    connection = {"kubeconfigSecret": {"name": "own"}, "kubeconfigValidity": {"validity": "24h"}}
    parent = a_configuration("host-seed", resources={"capacity": {"shoots": 9}}, gardenClientConnection=connection)
    configuration = managed(parent, config={"resources": {"reserved": {"shoots": 10}}})

    (read,) = parse_configurations(text_of(configuration))

    assert read.seed_name == "grown"
    assert read.labels == {"gardener.cloud/role": "seed"}
    assert (read.capacity, read.reserved) == ({"shoots": "250"}, {"shoots": 10})
    assert read.certificate.validity == DAY
    assert "kubeconfigSecret" not in configuration["gardenClientConnection"]


def test_a_managed_gardenlet_inherits_nothing_unless_it_is_to_be_merged() -> None:
    assert "backend" not in managed(mergeWithParent=False)


def test_a_configuration_comes_back_from_where_it_is_kept_as_it_was() -> None:
    (parent,) = parse_configurations(encode(a_configuration("host-seed")))
    configuration = managed({**parent.document, "since": datetime(2026, 1, 1, tzinfo=UTC)})

    assert msgspec.json.decode(encode(configuration)) == configuration


# ---------------------------------------------------------------------------------------------- where it is kept


def opened(directory: Path, number: int = 1) -> LocalFiles:
    files = LocalFiles(directory)
    files.open()
    files.acquire(FencingToken(1, number))
    return files


def test_what_is_deployed_is_read_by_everybody_and_written_by_the_owner(tmp_path: Path) -> None:
    owner, reader = DeploymentStore(opened(tmp_path)), DeploymentStore(LocalFiles(tmp_path))
    owner.save(DEPLOYED)

    assert reader.all() == [DEPLOYED]
    assert reader.load(("garden", "field")) == DEPLOYED
    assert reader.of("garden", "grown") == DEPLOYED
    assert reader.of("garden", "other") is None

    opened(tmp_path, 2)
    with pytest.raises(StaleFencingToken):
        owner.save(DEPLOYED)
    with pytest.raises(StaleFencingToken):
        owner.remove(("garden", "field"))


def test_a_reader_sees_each_change(tmp_path: Path) -> None:
    owner, reader = DeploymentStore(opened(tmp_path)), DeploymentStore(LocalFiles(tmp_path))
    owner.save(DEPLOYED)
    assert reader.all() == [DEPLOYED]
    changed = msgspec.structs.replace(DEPLOYED, generation=2)
    owner.save(changed)

    assert reader.all() == [changed]
    owner.remove(("garden", "field"))
    assert reader.all() == []
    assert not (tmp_path / "gardenlets").exists()


def test_a_file_that_cannot_be_read_counts_as_none(tmp_path: Path) -> None:
    deployments = DeploymentStore(opened(tmp_path))
    deployments.save(DEPLOYED)
    (tmp_path / "gardenlets" / "garden" / "field.json").write_text("{")

    assert deployments.all() == []
