"""The manifests of deploy/kubernetes on a real API server: every field is known, pods meet the namespace's standard.

They are stored too, and the cluster's controllers make pods of them: all that a pod names is there.
"""

import asyncio
import base64
import json
import os
import re
import sys
from pathlib import Path

import pytest

from tests.support.eventually import eventually
from tests.support.kube_clusters import real_clusters
from tests.support.kubectl import Kubectl
from tests.support.kubernetes_landscape import Landscape, read_landscape
from tests.support.kubernetes_manifests import (
    CLUSTER_WITH_IDENTITIES,
    KUBERNETES,
    PAGE,
    ROOT,
    WITH_IDENTITIES,
    own_overlay,
    render,
    with_components,
)

SECOND_SCHEDULER = KUBERNETES / "second-scheduler"
DIRECTORIES = (KUBERNETES / "overlays" / "single", KUBERNETES / "overlays" / "ha", SECOND_SCHEDULER)
MADE_ANEW = "deployments,statefulsets,services,networkpolicies,poddisruptionbudgets"
"""What is not the same in two overlays, and would be replaced one by one: no pod is ever ready here."""


@pytest.mark.timeout(300)
async def test_an_api_server_takes_every_manifest_without_a_warning(tmp_path: Path, binaries: str):
    kubeconfig = tmp_path / "kubeconfig"
    async with real_clusters(tmp_path, binaries, ["here"]) as (cluster,):
        kubeconfig.write_text(cluster.kubeconfig)
        kubectl = Kubectl(f"{binaries}/kubectl", kubeconfig)
        programs = f"{Path(sys.executable).parent}:{binaries}:{os.environ['PATH']}"
        environment = {**os.environ, "KUBECONFIG": str(kubeconfig), "PATH": programs}
        preparation = await asyncio.create_subprocess_exec("sh", "-ec", _preparation(), env=environment, cwd=ROOT)
        assert await preparation.wait() == 0
        for name, key in (("dashboard-key", "dashboard.key"), ("nats-routes", "password")):
            made = json.loads(await kubectl.text("get", "secret", name, "-n", "gardenbus", "-o", "json"))
            assert len(base64.b64decode(made["data"][key])) >= 48
        making = await asyncio.create_subprocess_exec("sh", "-ec", _keys(), env=environment, cwd=tmp_path)
        assert await making.wait() == 0
        nats = json.loads(await kubectl.text("get", "secret", "keys-nats", "-n", "gardenbus", "-o", "json"))
        assert {"server.key", "authorization.conf", "routes.conf", "routes.key"} <= nats["data"].keys()
        guarded = [
            with_components(tmp_path / each.overlay, each) for each in (WITH_IDENTITIES, CLUSTER_WITH_IDENTITIES)
        ]
        for directory in (*DIRECTORIES, guarded[0]):
            reported = await _applied(kubectl, directory, "--dry-run=server")
            assert reported.count("(server dry run)") == render(directory).count("\n---\n") + 1, directory
        own = own_overlay(tmp_path / "my")
        kustomization = own / "kustomization.yaml"
        second = f"resources:\n- {os.path.relpath(SECOND_SCHEDULER, own)}\n"
        kustomization.write_text(kustomization.read_text().replace("resources:\n", second, 1))
        for directory in (guarded[1], own):
            await _applied(kubectl, directory, "--server-side", "--force-conflicts")
            await _is_complete(kubectl)
            await kubectl.text("delete", MADE_ANEW, "--all", "-n", "gardenbus")


async def _applied(kubectl: Kubectl, directory: Path, *options: str) -> str:
    """What kubectl says when it applies a directory, without any warning."""
    file = kubectl.kubeconfig.with_name("rendered.yaml")
    file.write_text(render(directory))
    return await kubectl.text("apply", "--validate=strict", "--warnings-as-errors", *options, "-f", str(file))


async def _is_complete(kubectl: Kubectl) -> None:
    """All pods are made, controllers complain of nothing, and what objects name is there."""

    async def made() -> Landscape:
        landscape = await read_landscape(kubectl)
        assert (landscape.warnings(), landscape.missing_pods()) == ([], [])
        return landscape

    landscape = await eventually(made, every=1)
    assert {pod["status"]["phase"] for pod in landscape.of("Pod").values()} == {"Pending"}
    assert list(landscape.dangling()) == []
    assert list(landscape.closed_ports()) == []


def _preparation() -> str:
    """The commands of the page that make what has to be there first."""
    (block,) = re.findall(r"```sh\n(kubectl apply -f .*?)```", PAGE.read_text(), re.DOTALL)
    return block


def _keys() -> str:
    """The commands of the page that make keys, and Secrets of them."""
    (block,) = re.findall(r"```sh\n(python -m gardenbus.identity keys .*?)```", PAGE.read_text(), re.DOTALL)
    return block
