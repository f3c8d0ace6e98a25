"""A Plant of a real API server, which has no nodes."""

from pathlib import Path

from gardenbus.common.api.conditions import condition_status, conditions_of
from tests.support.kube_clusters import real_clusters
from tests.support.loops import Garden
from tests.support.plants import checked_plant


async def test_a_real_api_server_is_available_as_long_as_it_runs(tmp_path: Path, binaries: str) -> None:
    garden = Garden()
    async with real_clusters(tmp_path, binaries, ["here"]) as (cluster,):
        plant = await checked_plant(garden, cluster.kubeconfig)
        assert condition_status(conditions_of(plant), "APIServerAvailable") == "True", plant
        assert condition_status(conditions_of(plant), "EveryNodeReady") == "True", plant
        assert plant["status"]["clusterInfo"] == {
            "cloud": {"type": "<unknown>", "region": "<unknown>"},
            "kubernetes": {"version": "v1.34.4"},
        }
    plant = await checked_plant(garden)
    assert condition_status(conditions_of(plant), "APIServerAvailable") == "False"
    assert condition_status(conditions_of(plant), "EveryNodeReady") == "Unknown"
