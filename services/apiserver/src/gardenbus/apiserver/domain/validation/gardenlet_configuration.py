"""The rules of a GardenletConfiguration inside a ManagedSeed or a Gardenlet, and of any template of a seed.

Source: Gardener's `pkg/api/config/gardenlet/v1alpha1/validation/validation.go`, for the fields that are read here.
"""

from gardenbus.apiserver.domain.validation import seed
from gardenbus.apiserver.domain.validation.field_cursor import FieldCursor
from gardenbus.apiserver.domain.validation.metadata import check_labels
from gardenbus.apiserver.domain.validation.seed_settings import check_settings
from gardenbus.apiserver.domain.validation.shared import check_quantities
from gardenbus.common.api.document import section

API_VERSION = "gardenlet.config.gardener.cloud/v1alpha1"
KIND = "GardenletConfiguration"


def check_configuration(configuration: FieldCursor, *, is_on_shoot: bool = True) -> None:
    """Note every problem; the seed gets its name, and much of its spec, from the ManagedSeed and its shoot."""
    configuration.choice("apiVersion", (API_VERSION,))
    configuration.choice("kind", (KIND,))
    _check_resources(configuration.section("resources"))
    check_seed_template(configuration.section("seedConfig"), is_on_shoot=is_on_shoot)


def check_seed_template(template: FieldCursor, *, is_on_shoot: bool = True) -> None:
    """Note every problem of a seed's template: metadata without name, and as much of the spec as is stated."""
    metadata = template.section("metadata")
    check_labels(metadata, "labels")
    metadata.text_map("annotations")
    if metadata.has("name"):
        metadata.add_error("name", "must be left out: the seed is called as its ManagedSeed, or Gardenlet, is")
    spec = template.section("spec")
    seed.check_spec(spec, complete=False)
    seed.check_combinations(spec, complete=False)
    check_settings(spec)
    autoscaler = spec.nested("settings", "verticalPodAutoscaler")
    if autoscaler.boolean("enabled") and is_on_shoot:
        autoscaler.add_error("enabled", "must be false: the seed's shoot has its own already, and two would fight")


def _check_resources(resources: FieldCursor) -> None:
    capacity, reserved = check_quantities(resources, "capacity"), check_quantities(resources, "reserved")
    given = section(resources.content, "capacity")
    for name, amount in reserved.items():
        if name not in given:
            resources.add_error(f"reserved.{name}", "is reserved without capacity: state the capacity too")
        elif name in capacity and amount > capacity[name]:
            resources.add_error(f"reserved.{name}", "must be lower or equal to capacity")
