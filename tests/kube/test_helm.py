"""Helm on the Kubernetes API of a landscape: a chart of Shoots is installed, upgraded, rolled back, and removed."""

import json

import pytest

from tests.support.eventually import eventually
from tests.support.kubernetes_api import EXAMPLES, KubernetesApi, client_program

pytestmark = pytest.mark.slow
CHART = str(EXAMPLES / "chart")


def purposes(kubernetes_api: KubernetesApi) -> dict[str, str]:
    """Purposes of the Shoots of the release."""
    listed = json.loads(kubernetes_api.gardenbus("get", "shoots", "-n", "garden-dev", "-l", "team=orbit", "-o", "json"))
    return {each["metadata"]["name"]: each["spec"]["purpose"] for each in listed["items"]}


async def test_a_chart_of_shoots_is_installed_upgraded_rolled_back_and_removed(kubernetes_api: KubernetesApi) -> None:
    program = client_program("helm")

    def helm(*arguments: str) -> str:
        return kubernetes_api.text(program, *arguments)

    spec = kubernetes_api.shoot("any")["spec"]
    values = kubernetes_api.place / "values.json"
    values.write_text(json.dumps({"spec": {name: value for name, value in spec.items() if name != "purpose"}}))

    assert "STATUS: deployed" in helm("install", "orbit", CHART, "-f", str(values))
    assert purposes(kubernetes_api) == {"orbit-one": "evaluation"}
    assert kubernetes_api.run(program, "install", "orbit", CHART, "-f", str(values)).returncode != 0

    both = ("--set", "shoots.one=development,shoots.two=testing")
    helm("upgrade", "orbit", CHART, "-f", str(values), *both)
    assert purposes(kubernetes_api) == {"orbit-one": "development", "orbit-two": "testing"}
    assert kubernetes_api.object("configmap", "orbit-notes")["data"]["shoots"] == "one two"
    assert [each["status"] for each in json.loads(helm("history", "orbit", "-o", "json"))] == ["superseded", "deployed"]

    helm("rollback", "orbit", "1")

    async def rolled_back() -> None:
        assert purposes(kubernetes_api) == {"orbit-one": "evaluation"}

    await eventually(rolled_back, every=0.5)
    assert kubernetes_api.object("configmap", "orbit-notes")["data"]["shoots"] == "one"

    helm("uninstall", "orbit")

    async def gone() -> None:
        assert purposes(kubernetes_api) == {}
        assert not kubernetes_api.has("configmap", "orbit-notes")

    await eventually(gone, every=0.5)
    assert json.loads(helm("list", "-o", "json")) == []
