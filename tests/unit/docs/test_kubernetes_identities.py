"""The manifests for Kubernetes with identities: the settings of the compose files, and files that the servers take."""

import re
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from gardenbus.identity.deployment import Deployment, make_keys
from tests.support.kubernetes_manifests import (
    CLUSTER_WITH_IDENTITIES,
    PAGE,
    WITH_IDENTITIES,
    Guarded,
    compose_environment,
    compose_services,
    container,
    environment,
    find_kubectl,
    of_kind,
    rendered,
    with_components,
    workloads,
)
from tests.support.servers import executable

pytestmark = pytest.mark.skipif(find_kubectl() is None, reason="there is no kubectl here that could render them")

TEXT = PAGE.read_text()
HERE = {
    r"\bnats:(?=4222,)": "nats-0.nats:",
    "nats-2:": "nats-1.nats:",
    "nats-3:": "nats-2.nats:",
    "sentinel-1,sentinel-2,sentinel-3": "sentinel-0,sentinel-1,sentinel-2",
}
"""Names of servers in the compose file, and here."""
OTHERWISE = {
    "GARDENBUS_NATS_CA": "/keys/ca.crt",
    "GARDENBUS_DASHBOARD_KEY_FILE": "/etc/gardenbus/dashboard/dashboard.key",
}
"""An agent's authority is in its state directory in compose; replicas of the dashboard share a key here."""

Objects = Sequence[dict[str, Any]]


@pytest.fixture(scope="module")
def single(tmp_path_factory: pytest.TempPathFactory) -> Objects:
    return objects_of(tmp_path_factory, WITH_IDENTITIES)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Objects:
    return objects_of(tmp_path_factory, CLUSTER_WITH_IDENTITIES)


def objects_of(directories: pytest.TempPathFactory, guarded: Guarded) -> Objects:
    return rendered(with_components(directories.mktemp("overlays") / guarded.overlay, guarded))


def composed(*files: str) -> dict[str, dict[str, str]]:
    """The variables of each service where these files are read one on top of the other."""
    found: dict[str, dict[str, str]] = {}
    for file in files:
        for name, service in compose_services(file):
            found[name] = found.get(name, {}) | compose_environment(service)
    return found


def here(value: str) -> str:
    for there, name in HERE.items():
        value = re.sub(there, name, value)
    return value


def secrets_of(workload: dict[str, Any]) -> set[str]:
    volumes = workload["spec"]["template"]["spec"].get("volumes", ())
    return {volume["secret"]["secretName"] for volume in volumes if "secret" in volume}


def test_every_process_has_the_variables_of_the_compose_files(single: Objects, cluster: Objects) -> None:
    files = ("compose.yaml", "identities.yaml")
    for objects, expected in (
        (single, composed(*files)),
        (cluster, composed(*files, "cluster.yaml", "cluster-identities.yaml")),
    ):
        running = workloads(objects)
        assert "identity" in running
        for name, each in running.items():
            given = environment(each, objects)
            wanted = {key: OTHERWISE.get(key, here(value)) for key, value in expected[name].items()}
            assert {key: given.get(key) for key in wanted} == wanted, name
            assert given["GARDENBUS_NATS_URL"].count("tls://") == (3 if objects is cluster else 1)


def test_each_holder_has_its_own_keys_and_identity_alone_the_authoritys(cluster: Objects, single: Objects) -> None:
    for objects in (single, cluster):
        for name, each in of_kind(objects, "Deployment", "StatefulSet").items():
            server = {"sentinel": "redis"}.get(name, name)
            is_agent = name.startswith(("gardenlet-", "memberagent"))
            others = {"identity": {"keys-authority"}, "dashboard": {"dashboard-key"}}.get(name, set[str]())
            assert secrets_of(each) == {"keys-ca" if is_agent else f"keys-{server}"} | others, name
        assert "nats-routes" not in str(of_kind(objects, "StatefulSet"))
    workloads = re.findall(r"for holder in (.*?); do", TEXT)[0].split()
    deployments = of_kind(cluster, "Deployment")
    assert set(workloads) == {*deployments, "nats", "redis"}


def keys_for(directory: Path, nats: Path) -> Path:
    """Keys as the page has them made; paths of the NATS container become these."""
    names = re.findall(r"--name (\S+)", TEXT)
    routes = re.findall(r"--route (\S+)", TEXT)
    assert {"nats-0.nats", "nats-1.nats", "nats-2.nats"} == set(routes) < set(names)
    make_keys(directory, Deployment(names, {}, routes=routes), datetime.now(UTC))
    for file in (directory / "nats").glob("*.conf"):
        (nats / file.name).write_text(file.read_text().replace("/etc/nats/keys", str(nats)))
    for file in (directory / "nats").glob("*.[ck][re][ty]"):
        (nats / file.name).write_bytes(file.read_bytes())
    return directory


def test_nats_takes_the_configuration_with_the_keys_of_the_page(cluster: Objects, tmp_path: Path) -> None:
    keys = tmp_path / "etc" / "keys"
    keys.mkdir(parents=True)
    keys_for(tmp_path / "made", keys)
    (given,) = [each["data"] for name, each in of_kind(cluster, "ConfigMap").items() if name.startswith("nats-")]
    for name, text in given.items():
        (tmp_path / "etc" / name).write_text(text.replace("/etc/nats", str(tmp_path / "etc")))
    command = [executable("nats-server"), "-t", "--config", str(tmp_path / "etc" / "cluster-identities.conf")]
    ended = subprocess.run(command, env={"NATS_NAME": "nats-0"}, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    servers = of_kind(cluster, "StatefulSet")
    assert container(servers["nats"])["command"][-1] == "/etc/nats/cluster-identities.conf"
    assert [each["name"] for each in container(servers["nats"])["env"]] == ["NATS_NAME", "GOMEMLIMIT"]


def test_redis_and_sentinel_begin_with_tls_alone_and_users_of_their_own(cluster: Objects, tmp_path: Path) -> None:
    (given,) = [each["data"] for name, each in of_kind(cluster, "ConfigMap").items() if name.startswith("redis-")]
    nats, config, data = tmp_path / "nats", tmp_path / "config", tmp_path / "data"
    for directory in (nats, config, data):
        directory.mkdir()
    keys = keys_for(tmp_path / "keys", nats) / "redis"
    for name, text in given.items():
        (config / name).write_text(text)
    for server, port in (("redis", "tls-port 6379"), ("sentinel", "tls-port 26379")):
        workload = container(of_kind(cluster, "StatefulSet")[server])
        script = workload["command"][-1].replace("/data/", f"{data}/").replace("exec redis-server", "exec true")
        (files,) = [each["value"] for each in workload["env"] if each["name"] == "CONFIGURATION"]
        files = files.replace("/usr/local/etc/redis", str(config)).replace("/keys", str(keys))
        variables = {"PATH": "/usr/bin:/bin", "POD_NAME": f"{server}-1", "CONFIGURATION": files}
        subprocess.run(["sh", "-c", script], env=variables, capture_output=True, check=True)
        written = data / f"{server}.conf"
        lines = written.read_text().splitlines()
        assert written.stat().st_mode & 0o077 == 0
        assert {"port 0", port, "tls-replication yes"} <= set(lines), server
        wanted = "masteruser replica" if server == "redis" else "sentinel sentinel-user sentinel"
        assert wanted in lines
        assert "--tls" in workload["readinessProbe"]["exec"]["command"][-1]
    monitored = [number for number, line in enumerate(lines) if line.startswith("sentinel monitor garden redis-0 ")]
    assert monitored[0] < lines.index("sentinel auth-user garden sentinel"), "a user is of a master that is known"


def test_the_token_of_an_agent_goes_to_where_it_looks_for_it(single: Objects) -> None:
    (pod, seed) = re.findall(r"exec -i (\S+) -- .*?cat > /state/(\S+)/bootstrap-token", TEXT)[0]
    agent = of_kind(single, "StatefulSet")[pod.removesuffix("-0")]
    assert "/state" in container(agent)["args"]
    (name,) = [
        each["configMap"]["name"] for each in agent["spec"]["template"]["spec"]["volumes"] if "configMap" in each
    ]
    assert f"name: {seed}\n" in of_kind(single, "ConfigMap")[name]["data"]["seed.yaml"]
