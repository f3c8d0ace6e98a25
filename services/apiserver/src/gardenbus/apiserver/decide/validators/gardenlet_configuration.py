"""The rules of a GardenletConfiguration inside a ManagedSeed, and of any template of a seed.

Source: Gardener's `pkg/api/config/gardenlet/v1alpha1/validation/validation.go`, for the fields that are read here.
"""

from gardenbus.apiserver.decide.fields import Place
from gardenbus.apiserver.decide.metadata import check_labels, subdomain_problem
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
    if seed_config := configuration.section("seedConfig"):
        check_seed_template(seed_config)


def check_seed_template(template: Place) -> None:
    """Note every problem of a seed's template: metadata without name, and as much of the spec as is stated."""
    if metadata := template.section("metadata"):
        check_labels(metadata, "labels")
        metadata.text_map("annotations")
        if metadata.has("name"):
            metadata.note("name", "must be left out: the seed is called as its ManagedSeed is")
    spec = template.section("spec")
    if spec is None:
        return
    seed.check_spec(spec, complete=False)
    if spec.has("ingress"):
        _check_ingress(spec)
    autoscaler = spec.nested("settings", "verticalPodAutoscaler")
    if autoscaler is not None and autoscaler.boolean("enabled"):
        autoscaler.note("enabled", "must be false: the seed's shoot has its own already, and two would fight")


def _check_ingress(spec: Place) -> None:
    ingress = spec.section("ingress")
    if ingress is not None and (domain := ingress.text("domain")) and (problem := subdomain_problem(domain)):
        ingress.note("domain", problem)


def _check_resources(resources: Place) -> None:
    capacity, reserved = check_quantities(resources, "capacity"), check_quantities(resources, "reserved")
    given = section(resources.content, "capacity")
    for name, amount in reserved.items():
        if name not in given:
            resources.note(f"reserved.{name}", "is reserved without capacity: state the capacity too")
        elif name in capacity and amount > capacity[name]:
            resources.note(f"reserved.{name}", "must be lower or equal to capacity")
