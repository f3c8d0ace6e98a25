"""Requests while the server has no streams, as after the loss of its disk: they are made again, so nothing is final."""

import pytest

from tests.support.kube_apis import a_kube_api

MAPS = "/api/v1/namespaces/dev/configmaps"


@pytest.mark.parametrize("method", ["PATCH", "DELETE"])
async def test_a_write_is_unavailable_and_not_without_its_object(method: str) -> None:
    async with a_kube_api() as kube:
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}}
        assert (await kube.request("POST", MAPS, json=body)).status == 201
        kube.server.remove("REQUESTS")
        headers = {"Content-Type": "application/merge-patch+json"} if method == "PATCH" else {}

        response = await kube.request(
            method, f"{MAPS}/one", json={"data": {"a": "b"}} if headers else None, headers=headers
        )

        status = await response.json()
        assert (response.status, status["reason"]) == (503, "ServiceUnavailable")
        assert "the stream of requests is not there" in status["message"]
