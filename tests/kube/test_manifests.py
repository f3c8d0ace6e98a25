"""The manifests of deploy/kubernetes on a real API server: every field is known, pods meet the namespace's standard."""

import asyncio
import base64
import json
import os
import re
import sys
from pathlib import Path

from tests.support.kube_clusters import real_clusters
from tests.support.kubectl import Kubectl
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

DIRECTORIES = (KUBERNETES / "overlays" / "single", KUBERNETES / "overlays" / "ha", KUBERNETES / "second-scheduler")


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
        for directory in (*DIRECTORIES, *guarded, own_overlay(tmp_path / "my")):
            file = tmp_path / "rendered.yaml"
            text = render(directory)
            file.write_text(text)
            strictly = ("--dry-run=server", "--validate=strict", "--warnings-as-errors")
            said = await kubectl.text("apply", *strictly, "-f", str(file))
            assert said.count("(server dry run)") == text.count("\n---\n") + 1, directory


def _preparation() -> str:
    """The commands of the page that make what has to be there first."""
    (block,) = re.findall(r"```sh\n(kubectl apply -f .*?)```", PAGE.read_text(), re.DOTALL)
    return block


def _keys() -> str:
    """The commands of the page that make keys, and Secrets of them."""
    (block,) = re.findall(r"```sh\n(python -m gardenbus.identity keys .*?)```", PAGE.read_text(), re.DOTALL)
    return block
