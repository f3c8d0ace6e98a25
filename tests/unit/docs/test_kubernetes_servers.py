"""What the manifests for Kubernetes start as servers of clusters: the commands run here, on other paths."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.kubernetes_manifests import KUBERNETES, container, environment, find_kubectl, of_kind, rendered
from tests.support.servers import executable

pytestmark = pytest.mark.skipif(find_kubectl() is None, reason="there is no kubectl here that could render them")

PASSWORD = "routes-5e5e"


def cluster() -> tuple[dict[str, Any], dict[str, Any], Any]:
    objects = rendered(KUBERNETES / "overlays" / "ha")
    maps = {name.rpartition("-")[0]: each["data"] for name, each in of_kind(objects, "ConfigMap").items()}
    return of_kind(objects, "StatefulSet"), maps, objects


def written_by(server: str, pod: str, directory: Path) -> list[str]:
    """The lines of the file that a pod writes at its first start."""
    servers, maps, _ = cluster()
    given, data = directory / f"{pod}-given", directory / f"{pod}-data"
    given.mkdir()
    data.mkdir()
    for name, text in maps["redis"].items():
        (given / name).write_text(text)
    shell, option, script = container(servers[server])["command"]
    script = script.replace("/usr/local/etc/redis", str(given)).replace("/data/", f"{data}/")
    command = [shell, option, script.replace("exec redis-server", "exec echo")]

    def start() -> str:
        subprocess.run(command, env={"POD_NAME": pod, "PATH": "/usr/bin:/bin"}, capture_output=True, check=True)
        (written,) = data.iterdir()
        return written.read_text()

    first = start()
    (next(data.iterdir())).write_text(f"{first}# what the server has written since\n")
    assert start() == f"{first}# what the server has written since\n", "a second start must not forget it"
    return first.splitlines()


def test_the_first_redis_is_the_master_and_others_follow_it(tmp_path: Path):
    lines = {pod: written_by("redis", pod, tmp_path) for pod in ("redis-0", "redis-1", "redis-2")}
    for pod, each in lines.items():
        assert f"replica-announce-ip {pod}" in each
        assert "min-replicas-to-write 1" in each
        assert ("replicaof redis-0 6379" in each) == (pod != "redis-0")
        assert each.count("appendfsync always") == 1


def test_sentinels_watch_the_first_redis_and_say_who_they_are(tmp_path: Path):
    lines = written_by("sentinel", "sentinel-1", tmp_path)
    assert [each for each in lines if each.startswith("sentinel monitor")] == ["sentinel monitor garden redis-0 6379 2"]
    assert "sentinel announce-ip sentinel-1" in lines


def test_nats_takes_the_configuration_of_a_cluster_with_the_variables_of_its_pod(tmp_path: Path):
    servers, maps, objects = cluster()
    for name, text in maps["nats"].items():
        (tmp_path / name).write_text(text)
    given = container(servers["nats"])["env"]
    names = [each["name"] for each in given]
    assert names.index("ROUTES_PASSWORD") < names.index("ROUTE_1"), "a variable is put in only where it stands before"
    variables = environment(servers["nats"], objects) | {"NATS_NAME": "nats-0", "ROUTES_PASSWORD": PASSWORD}
    variables = {key: value.replace("$(ROUTES_PASSWORD)", PASSWORD) for key, value in variables.items()}
    ended = subprocess.run(
        [executable("nats-server"), "-t", "--config", str(tmp_path / "cluster.conf")],
        env=variables,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert "is valid" in ended.stderr + ended.stdout
