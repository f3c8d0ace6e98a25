"""Services, by what they respond on `$SRV.STATS`."""

from gardenbus.common.api.document import Document
from gardenbus.dashboard.domain.services import services_of


def response(name: str, version: str, instance: str, *, prefix: str = "garden", requests: int = 0) -> Document:
    return {
        "name": name,
        "version": version,
        "started": "2026-01-02T03:04:05Z",
        "metadata": {"instance": instance, "prefix": prefix},
        "endpoints": [{"num_requests": requests, "num_errors": 1}, {"num_requests": 1, "num_errors": 0}],
    }


def test_replicas_are_listed_under_their_service_with_all_versions():
    scheduler, relay = response("scheduler", "1.1.0", "b"), response("relay", "1.0.0", "a", requests=6)
    found = services_of([scheduler, relay, response("scheduler", "1.0.0", "a")], "garden")
    assert [(each.name, each.versions) for each in found] == [("relay", ["1.0.0"]), ("scheduler", ["1.0.0", "1.1.0"])]
    assert [each.instance for each in found[1].replicas] == ["a", "b"]
    assert (found[0].replicas[0].requests, found[0].replicas[0].errors) == (7, 1)


def test_services_of_another_landscape_on_the_same_server_are_left_out():
    assert services_of([response("relay", "1.0.0", "a", prefix="orchard")], "garden") == []
