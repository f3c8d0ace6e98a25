"""Landscapes of the benches' manifests, in memory."""

from gardenbus.bench.manifests.shoots import Mix, basics, seed
from gardenbus.common.api.document import encode
from gardenbus.common.api.garden.cloudprofiles import CloudProfile, RegionConfigMap
from gardenbus.common.api.garden.projects import Project
from gardenbus.common.api.garden.strategies import MINIMAL_DISTANCE
from gardenbus.common.api.views import read_view
from gardenbus.scheduling.seed_candidates import SeedCandidate
from gardenbus.scheduling.snapshot import Landscape


def bench_landscape(mix: Mix, seeds: int) -> Landscape:
    """The landscape that a bench of this mix and so many seeds loads."""
    documents = basics(mix)
    of = {
        kind: [each for each in documents if each["kind"] == kind] for kind in ("CloudProfile", "ConfigMap", "Project")
    }
    return Landscape(
        seeds=[SeedCandidate.of(seed(number, mix)) for number in range(seeds)],
        cloudprofiles=[read_view(encode(each), CloudProfile) for each in of["CloudProfile"]],
        region_configmaps=[read_view(encode(each), RegionConfigMap) for each in of["ConfigMap"]],
        projects=[read_view(encode(each), Project) for each in of["Project"]],
        strategy=MINIMAL_DISTANCE,
    )
