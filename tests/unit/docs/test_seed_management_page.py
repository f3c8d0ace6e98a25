"""What the page about seeds that grow shows and says is so."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType

import msgspec
import pytest
import typer.main
import yaml

from gardenbus.apiserver.domain.defaults import with_creation_defaults, with_defaults
from gardenbus.apiserver.domain.managed_seeds import admit_managed_seed, with_defaults_of_its_shoot
from gardenbus.apiserver.domain.related_objects import RelatedObjects
from gardenbus.apiserver.domain.use_as_seed import requested_seed
from gardenbus.apiserver.domain.validation.manifest import validate
from gardenbus.apiserver.domain.validation.metadata import key_of
from gardenbus.autoscaler.controllers import seed_autoscaler
from gardenbus.autoscaler.domain import status
from gardenbus.autoscaling import decision
from gardenbus.cli.commands import simulate_autoscaler
from gardenbus.cli.lazy import with_options
from gardenbus.cli.migrations.improvements import PROTECT_FROM_REBALANCING
from gardenbus.cli.simulate.ready_seeds import with_ready_seeds
from gardenbus.cli.simulate.scheduling import simulate
from gardenbus.common.api.configuration.controller_manager import (
    LifecycleConfiguration,
    ManagedSeedSetConfiguration,
    parse_lifecycle,
)
from gardenbus.common.api.configuration.controller_manager import parse_managed_seed_sets as parse_sets
from gardenbus.common.api.configuration.gardenlet import ManagedSeedSettings, parse_configurations
from gardenbus.common.api.configuration.seed_autoscaler import AutoscalerConfiguration, SchedulerReference
from gardenbus.common.api.configuration.seed_autoscaler import parse_configuration as parse_autoscaler
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.garden.managed_seed_sets import replica_managed_seed, replica_shoot, template_seed
from gardenbus.common.api.garden.seed_management import (
    CORDONED_BY,
    PRIORITY,
    PROTECT_FROM_DELETION,
    REMOVAL_ANNOTATION,
    REVISION_LABEL,
    USE_AS_SEED,
)
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.runtime.settings import CommonSettings
from gardenbus.credentials.certificates import CLIENT_LIFE
from gardenbus.managedseedset.domain import conditions, replica_steps, rolling_update, scale_in
from gardenbus.managedseedset.settings import ManagedSeedSetSettings
from tests.support.builders import merged

PAGE = (Path(__file__).parents[3] / "docs" / "seed-management.md").read_text()
BLOCKS = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
CONFIGURATIONS = {"GardenletConfiguration", "ControllerManagerConfiguration", "SeedAutoscalerConfiguration"}


def documents(block: str) -> list[Document]:
    return [document for document in yaml.safe_load_all(block) if document is not None]


def everything() -> list[Document]:
    return [document for block in BLOCKS for document in documents(block)]


def of_kind(kind: str) -> list[Document]:
    found = [document for document in everything() if document["kind"] == kind]
    assert found, f"the page shows no {kind}"
    return found


def source_of(module: ModuleType) -> str:
    """Its code, for reasons that stand nowhere but in it."""
    return Path(str(module.__file__)).read_text()


def named(document: Document) -> str:
    return f"{document['kind']} {section(document, 'metadata').get('name', '')}".strip()


def stored(document: Document) -> Document:
    """The manifest as the apiserver would store it. Raises InvalidResource."""
    key_of(document)
    document = with_creation_defaults(with_defaults(document))
    validate(document, None)
    return document


def admitted(managed_seed: Document, shoot: Document) -> Document:
    """A ManagedSeed as the apiserver would store it on a Shoot. Raises InvalidResource, Forbidden."""
    related = RelatedObjects(objects={ObjectKey("shoot", "garden", shoot["metadata"]["name"]): shoot})
    managed_seed = with_defaults_of_its_shoot(stored(managed_seed), None, related)
    validate(managed_seed, None)
    admit_managed_seed(managed_seed, None, related)
    return managed_seed


def table_rows(heading: str) -> Iterator[list[str]]:
    """The rows of the first table below the line that begins with `heading`, as the code in each cell."""
    rest = PAGE.split(f"\n{heading}", 1)[1]
    table = re.search(r"((?:^\|.*\n)+)", rest, re.MULTILINE)
    assert table is not None
    for line in table[1].splitlines()[1:]:
        yield re.findall(r"`([^`]*)`", line.split("|")[1])


@pytest.mark.parametrize("document", everything(), ids=named)
def test_every_manifest_on_the_page_is_accepted(document: Document) -> None:
    if document["kind"] not in CONFIGURATIONS:
        stored(document)


def test_every_managed_seed_on_the_page_stands_on_the_shoot_beside_it() -> None:
    shoots = {shoot["metadata"]["name"]: stored(shoot) for shoot in of_kind("Shoot")}

    for managed_seed in of_kind("ManagedSeed"):
        admitted(managed_seed, shoots[managed_seed["spec"]["shoot"]["name"]])


def test_replicas_of_every_set_on_the_page_are_accepted() -> None:
    for each in of_kind("ManagedSeedSet"):
        managed_seed_set = merged(stored(each), {"metadata": {"uid": "9d7e3c52-52a1-4f34-9b3d-1f7f6ed8ea16"}})
        name = f"{each['metadata']['name']}-0"
        shoot = stored(replica_shoot(managed_seed_set, name))
        seed = admitted(replica_managed_seed(managed_seed_set, name), shoot)
        assert seed["metadata"]["name"] == name


def test_in_the_page_s_landscape_replicas_go_on_the_host_seed_and_shoots_on_what_grows() -> None:
    landscape = documents(BLOCKS[0])
    (grove,) = [document for document in landscape if document["kind"] == "ManagedSeedSet"]
    (apollo,) = documents(BLOCKS[1])
    ground = [document for document in landscape if document["kind"] in ("Project", "CloudProfile")]
    hosts = [document for document in landscape if document["kind"] == "GardenletConfiguration"]
    replica = replica_shoot(grove, "grove-0")

    before = simulate(with_ready_seeds([*hosts, *map(with_defaults, ground), replica, apollo]), "SameRegion")
    grown = template_seed(grove, "grove-0")
    after = simulate(with_ready_seeds([*hosts, *map(with_defaults, ground), grown, replica, apollo]), "SameRegion")

    assert [placement.seed for placement in before] == ["host", None]
    assert [placement.seed for placement in after] == ["host", "grove-0"]


def test_the_configuration_files_hold_the_defaults() -> None:
    (of_services,) = of_kind("ControllerManagerConfiguration")
    (of_autoscaler,) = of_kind("SeedAutoscalerConfiguration")
    of_gardenlet = of_kind("GardenletConfiguration")[-1]

    sets, lifecycle = parse_sets(yaml.safe_dump(of_services)), parse_lifecycle(yaml.safe_dump(of_services))
    autoscaler = parse_autoscaler(yaml.safe_dump(of_autoscaler))
    (gardenlet,) = parse_configurations(yaml.safe_dump(of_gardenlet))

    written = {"log_level": "info", "log_format": "json"}
    assert sets == msgspec.structs.replace(ManagedSeedSetConfiguration(), **written)
    assert lifecycle.concurrent_migrations == LifecycleConfiguration().concurrent_migrations
    schedulers = (SchedulerReference(strategy="SameRegion"),)
    assert autoscaler == msgspec.structs.replace(AutoscalerConfiguration(), schedulers=schedulers, **written)
    assert gardenlet.managed_seed == ManagedSeedSettings()
    assert gardenlet.certificate.validity == CLIENT_LIFE
    existing = {field.name.replace("_", "") for field in msgspec.structs.fields(ManagedSeedSettings)}
    assert {name.lower() for name in of_gardenlet["controllers"]["managedSeed"]} == existing


def test_every_setting_of_sets_is_on_the_page_with_its_default() -> None:
    own = {field.name for field in msgspec.structs.fields(ManagedSeedSetSettings)}
    own -= {field.name for field in msgspec.structs.fields(CommonSettings)} | {"configuration"}
    announced: Mapping[str, str] = dict(re.findall(r"^\| `GARDENBUS_([A-Z_]+)` \| `([^`]+)` \|", PAGE, re.MULTILINE))

    assert {name.lower() for name in announced} == own
    for name, default in announced.items():
        value = getattr(ManagedSeedSetSettings(), name.lower())
        assert str(value or "none") == default or float(value) == float(default)


def test_every_reason_for_which_a_set_waits_is_on_the_page() -> None:
    reasons = {value for name, value in vars(replica_steps).items() if name.isupper() and isinstance(value, str)}
    announced = {name for row in table_rows("| `pendingReplica.reason`") for name in row[:1]}

    reasons -= {value for value in reasons if not value[0].isupper()}
    assert announced == reasons


@pytest.mark.parametrize(
    "word",
    [
        conditions.SCALE_IN_BLOCKED,
        conditions.REPLICA_UNSCHEDULABLE,
        conditions.INVALID_PRIORITY,
        rolling_update.PROGRESSING,
        rolling_update.UPDATING,
        rolling_update.UPDATE_COMPLETE,
        rolling_update.UPDATE_FAILED,
        rolling_update.PARTITIONED,
        CORDONED_BY,
        REMOVAL_ANNOTATION,
        PRIORITY,
        PROTECT_FROM_DELETION,
        REVISION_LABEL,
        USE_AS_SEED,
        PROTECT_FROM_REBALANCING,
    ],
)
def test_every_condition_and_annotation_is_on_the_page(word: str) -> None:
    assert f"`{word}" in PAGE


def test_every_obstacle_to_shrinking_is_on_the_page() -> None:
    reasons = set(re.findall(r'Obstacle\(replica\.name, "(\w+)"', source_of(scale_in))) | {"NoReplicaRemovable"}

    assert len(reasons) == 5
    assert [reason for reason in sorted(reasons) if f"`{reason}`" not in PAGE] == []


def test_every_finding_of_an_autoscaler_is_on_the_page() -> None:
    sources = "".join(map(source_of, (decision, status, seed_autoscaler)))
    reasons = set(re.findall(r'ConditionValue\((?:TRUE|FALSE), "(\w+)"', sources))
    reasons |= set(re.findall(r'_fail\(stored, "(\w+)"', sources))

    assert len(reasons) >= 15
    assert [reason for reason in sorted(reasons) if f"`{reason}`" not in PAGE] == []


def test_every_word_of_the_annotation_use_as_seed_on_the_page_is_known() -> None:
    words = [word for row in table_rows("| in the list |") for word in row if word and ":" not in word[:12]]
    assert {"protected", "no-gardenlet", "featureGates.DefaultSeccompProfile=true"} <= {*words}

    for word in words:
        annotations = {USE_AS_SEED: f"true,{word}"}
        shoot: Document = {
            "apiVersion": "core.gardener.cloud/v1beta1",
            "kind": "Shoot",
            "metadata": {"name": "oak", "namespace": "garden", "uid": "1", "annotations": annotations},
        }
        used = requested_seed(shoot)
        assert used.managed_seed is not None
        assert used.warnings == (), word


def test_every_option_of_simulate_autoscaler_is_on_the_page() -> None:
    alone = typer.Typer(add_completion=False)
    alone.command()(with_options(simulate_autoscaler.autoscaler))
    parameters = typer.main.get_command(alone).params
    options = {option for each in parameters for option in (*each.opts, *each.secondary_opts)}

    announced = {option for row in table_rows("| option |") for option in row}

    assert announced == {option for option in options if option.startswith("--")} - {"--output", "--help"}
