"""The rules of a GardenletConfiguration inside a ManagedSeed.

Source: Gardener's `pkg/api/config/gardenlet/v1alpha1/validation/validation.go`, for the fields that are read here.
"""

from gardenbus.apiserver.decide.fields import Place
from gardenbus.apiserver.decide.metadata import check_labels
from gardenbus.apiserver.decide.validators import seed
from gardenbus.apiserver.decide.validators.scheduling import check_quantities
from gardenbus.common.resources.document import section

API_VERSION = "gardenlet.config.gardener.cloud/v1alpha1"
KIND = "GardenletConfiguration"


def check_configuration(configuration: Place) -> None:
    """Note every problem; the seed gets its name, and much of its spec, from the ManagedSeed and its shoot."""
    configuration.choice("apiVersion", (API_VERSION,), required=True)
    configuration.choice("kind", (KIND,), required=True)
    if resources := configuration.section("resources"):
        _check_resources(resources)
    seed_config = configuration.section("seedConfig")
    if seed_config is None:
        return
    if metadata := seed_config.section("metadata"):
        check_labels(metadata, "labels")
        metadata.text_map("annotations")
        if metadata.has("name"):
            metadata.note("name", "must be left out: the seed is called as its ManagedSeed is")
    if spec := seed_config.section("spec"):
        seed.check_spec(spec, complete=False)


def _check_resources(resources: Place) -> None:
    capacity, reserved = check_quantities(resources, "capacity"), check_quantities(resources, "reserved")
    given = section(resources.content, "capacity")
    for name, amount in reserved.items():
        if name not in given:
            resources.note(f"reserved.{name}", "is reserved without capacity: state the capacity too")
        elif name in capacity and amount > capacity[name]:
            resources.note(f"reserved.{name}", "must be lower or equal to capacity")
