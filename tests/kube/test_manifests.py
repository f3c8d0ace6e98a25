"""The manifests of deploy/kubernetes on a real API server: every field is known, pods meet the namespace's standard."""

from pathlib import Path

from tests.support.kube_clusters import real_clusters
from tests.support.kubectl import Kubectl
from tests.support.kubernetes_manifests import KUBERNETES, own_overlay, render

DIRECTORIES = (KUBERNETES / "overlays" / "single", KUBERNETES / "overlays" / "ha", KUBERNETES / "second-scheduler")


async def test_an_api_server_takes_every_manifest_without_a_warning(tmp_path: Path, binaries: str):
    kubeconfig = tmp_path / "kubeconfig"
    async with real_clusters(tmp_path, binaries, ["here"]) as (cluster,):
        kubeconfig.write_text(cluster.kubeconfig)
        kubectl = Kubectl(f"{binaries}/kubectl", kubeconfig)
        await kubectl.text("apply", "-f", str(KUBERNETES / "base" / "namespace.yaml"))
        for directory in (*DIRECTORIES, own_overlay(tmp_path / "my")):
            file = tmp_path / "rendered.yaml"
            text = render(directory)
            file.write_text(text)
            strictly = ("--dry-run=server", "--validate=strict", "--warnings-as-errors")
            said = await kubectl.text("apply", *strictly, "-f", str(file))
            assert said.count("(server dry run)") == text.count("\n---\n") + 1, directory
