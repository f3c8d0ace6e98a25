"""Seeds as they would be once their gardenlets ran: what `simulate` makes of GardenletConfigurations. Pure."""

from collections.abc import Iterable

from gardenbus.agent.domain.allocatable import allocatable
from gardenbus.cli.manifests.files import GARDENLET_CONFIGURATION, SCHEDULER_CONFIGURATION
from gardenbus.common.api.configuration.gardenlet import GardenletConfiguration, parse_configurations
from gardenbus.common.api.configuration.scheduler import parse_configuration
from gardenbus.common.api.document import Document, encode, section
from gardenbus.common.api.garden.shoots import DEFAULT_SCHEDULER
from gardenbus.common.errors import BadRequest

_READY_CONDITIONS = ("GardenletReady", "SeedSystemComponentsHealthy", "BackupBucketsReady")


def with_ready_seeds(documents: Iterable[Document]) -> list[Document]:
    """The manifests with each GardenletConfiguration replaced by its Seed. Raises SettingsInvalid."""
    return [each for document in documents for each in _in_place_of(document)]


def ready_seeds_in(documents: Iterable[Document]) -> list[Document]:
    """The Seeds among some manifests (GardenletConfigurations count), each as if its gardenlet kept it.

    Raises SettingsInvalid, and BadRequest when there is none.
    """
    seeds = [each for each in with_ready_seeds(documents) if each.get("kind") == "Seed"]
    if not seeds:
        raise BadRequest("there is no Seed and no GardenletConfiguration in it")
    return [
        {
            **seed,
            "status": {
                **section(seed, "status"),
                "conditions": [{"type": name, "status": "True"} for name in _READY_CONDITIONS],
                "lastOperation": {"type": "Reconcile", "state": "Succeeded", "progress": 100},
            },
        }
        for seed in seeds
    ]


def strategy_in(documents: Iterable[Document]) -> str | None:
    """The strategy of a SchedulerConfiguration among them, the default scheduler's if there are several.

    Raises SettingsInvalid.
    """
    configurations = [
        parse_configuration(encode(document))
        for document in documents
        if document.get("kind") == SCHEDULER_CONFIGURATION
    ]
    profiles = [profile for each in configurations for profile in each.served]
    by_default = [each for each in profiles if each.scheduler_name == DEFAULT_SCHEDULER]
    return next((each.strategy for each in (*by_default, *profiles)), None)


def _in_place_of(document: Document) -> list[Document]:
    if document.get("kind") != GARDENLET_CONFIGURATION:
        return [document]
    return [_ready_seed(configuration) for configuration in parse_configurations(encode(document))]


def _ready_seed(configuration: GardenletConfiguration) -> Document:
    """A Seed that is ready and has what its gardenlet would report as allocatable."""
    return {
        "apiVersion": "core.gardener.cloud/v1beta1",
        "kind": "Seed",
        "metadata": {
            "name": configuration.seed_name,
            "generation": 1,
            "labels": dict(configuration.labels),
            "annotations": dict(configuration.annotations),
        },
        "spec": configuration.spec,
        "status": {
            "observedGeneration": 1,
            "allocatable": dict(allocatable(configuration.capacity, configuration.reserved)),
            "conditions": [{"type": name, "status": "True"} for name in _READY_CONDITIONS],
            "lastOperation": {"type": "Reconcile", "state": "Succeeded", "progress": 100},
        },
    }
