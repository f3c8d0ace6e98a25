"""The manifests for Kubernetes: what the compose deployment runs, with the same settings, and as a cluster wants it."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from gardenbus.diagnostics.login_keys import read_key
from tests.support.kubernetes_manifests import (
    COMPOSE,
    KUBERNETES,
    PAGE,
    ROOT,
    compose_environment,
    compose_services,
    container,
    environment,
    find_kubectl,
    of_kind,
    own_overlay,
    rendered,
    workloads,
)

SINGLE = KUBERNETES / "overlays" / "single"
HA = KUBERNETES / "overlays" / "ha"
OWN = {name: each for name, each in compose_services("compose.yaml") if each["image"].startswith("gardenbus/")}
AGENTS = {"gardenlet-earth", "gardenlet-aws", "gardenlet-gcp", "memberagent"}
TEXT = PAGE.read_text()
ELSEWHERE = {"GARDENBUS_DASHBOARD_KEY_FILE": "/etc/gardenbus/dashboard/dashboard.key"}
"""A volume in compose, a Secret here, because replicas share it."""

with_kubectl = pytest.mark.skipif(find_kubectl() is None, reason="there is no kubectl here that could render them")


def pod(workload: dict[str, Any]) -> dict[str, Any]:
    return workload["spec"]["template"]


def labels(workload: dict[str, Any]) -> set[tuple[str, str]]:
    return set(pod(workload)["metadata"]["labels"].items())


def settings_of(service: str) -> set[str]:
    """The variables that the reference of settings has for a service."""
    sections = re.split(r"^## ", (ROOT / "docs" / "reference" / "settings.md").read_text(), flags=re.MULTILINE)
    (own,) = [each for each in sections if each.startswith(f"{service}\n")] or [""]
    (common,) = [each for each in sections if each.startswith("Every service\n")]
    return set(re.findall(r"^\| `(GARDENBUS_\w+)`", common + own, re.MULTILINE))


def files_named(kustomization: Path) -> Iterator[Path]:
    content = yaml.safe_load(kustomization.read_text())
    named = [*content.get("resources", ()), *content.get("components", ())]
    named += [each["path"] for each in content.get("patches", ()) if "path" in each]
    for each in content.get("configMapGenerator", ()):
        named += [file.rpartition("=")[2] for file in each.get("files", ())]
    for each in named:
        yield (kustomization.parent / each).resolve()


def test_every_file_is_yaml_and_belongs_to_a_kustomization_that_names_only_what_is_there():
    kustomizations = [*KUBERNETES.rglob("kustomization.yaml"), COMPOSE / "kustomization.yaml"]
    named = {file for each in kustomizations for file in files_named(each)}
    assert [str(each) for each in named if not each.exists()] == []
    for file in KUBERNETES.rglob("*"):
        if file.is_file():
            assert list(yaml.safe_load_all(file.read_text())), file
            assert file in named or file in kustomizations, f"{file}: no kustomization names it"


@with_kubectl
def test_every_service_of_compose_runs_here_with_the_same_image_arguments_and_environment():
    objects = rendered(SINGLE)
    running = workloads(objects)
    assert running.keys() == OWN.keys()
    for name, service in OWN.items():
        assert container(running[name])["image"] == service["image"]
        assert container(running[name]).get("args") == service.get("command"), name
        expected = compose_environment(service)
        assert environment(running[name], objects) == expected | {
            key: value for key, value in ELSEWHERE.items() if key in expected
        }, name


@with_kubectl
def test_the_second_scheduler_has_the_environment_of_the_first():
    first, second = (
        container(workloads(rendered(where))[name])
        for where, name in ((KUBERNETES / "base", "scheduler"), (KUBERNETES / "second-scheduler", "scheduler-mine"))
    )
    assert [each["configMapRef"]["name"].partition("-")[0] for each in first["envFrom"]] == ["bus", "store"]
    assert second["envFrom"] == [{"configMapRef": {"name": "bus"}}, {"configMapRef": {"name": "store"}}]
    assert (second["args"], second["image"]) == (first["args"], first["image"])


@with_kubectl
def test_clusters_have_two_replicas_of_each_service_and_the_settings_of_compose():
    objects = rendered(HA)
    running = workloads(objects)
    assert running.keys() == OWN.keys() - AGENTS
    clusters = dict(compose_services("cluster.yaml"))
    names = {"nats://nats:": "nats://nats-0.nats:", "nats-2:": "nats-1.nats:", "nats-3:": "nats-2.nats:"}
    names |= {f"sentinel-{number}": f"sentinel-{number - 1}" for number in (1, 2, 3)}
    for name, each in running.items():
        assert each["spec"]["replicas"] == 2, name
        expected = compose_environment(OWN[name]) | compose_environment(clusters[name]) | ELSEWHERE
        given = environment(each, objects)
        assert given.keys() == expected.keys() - (set() if name == "dashboard" else ELSEWHERE.keys()), name
        for key, value in given.items():
            as_here = re.sub("|".join(map(re.escape, names)), lambda found: names[found[0]], expected[key])
            assert value == as_here, (name, key)


@with_kubectl
@pytest.mark.parametrize("overlay", [SINGLE, HA])
def test_every_variable_is_one_that_the_service_reads(overlay: Path):
    objects = rendered(overlay)
    for name, each in workloads(objects).items():
        service = container(each)["image"].removeprefix("gardenbus/")
        assert environment(each, objects).keys() <= settings_of(service), name


@with_kubectl
@pytest.mark.parametrize("overlay", [SINGLE, HA])
def test_every_workload_has_probes_a_budget_and_the_rights_of_its_container(overlay: Path):
    objects = rendered(overlay)
    budgets = of_kind(objects, "PodDisruptionBudget")
    for name, each in of_kind(objects, "Deployment", "StatefulSet").items():
        assert {"startupProbe", "livenessProbe", "readinessProbe"} <= container(each).keys(), name
        assert set(budgets[name]["spec"]["selector"]["matchLabels"].items()) <= labels(each), name
        rights = pod(each)["spec"]["securityContext"] | container(each)["securityContext"]
        assert rights["runAsNonRoot"] is rights["readOnlyRootFilesystem"] is True, name
        assert rights["allowPrivilegeEscalation"] is False, name
        assert rights["runAsUser"] == (999 if name in {"redis", "sentinel"} else 10001), name
        assert pod(each)["spec"]["enableServiceLinks"] is False, f"{name}: variables of Services would be settings"
    for name, each in workloads(objects).items():
        paths = [container(each)[probe]["httpGet"]["path"] for probe in ("startupProbe", "livenessProbe")]
        assert [*paths, container(each)["readinessProbe"]["httpGet"]["path"]] == ["/livez", "/livez", "/readyz"], name


@with_kubectl
def test_limits_are_those_of_compose():
    found = of_kind(rendered(SINGLE), "Deployment", "StatefulSet")
    services = dict(compose_services("compose.yaml"))
    for name in services:
        limits = services[name]["deploy"]["resources"]["limits"]
        given = container(found[name])["resources"]["limits"]
        assert float(given["cpu"]) == float(limits["cpus"]), name
        assert given["memory"] == f"{limits['memory']}i", name


@with_kubectl
@pytest.mark.parametrize("overlay", [SINGLE, HA])
def test_every_file_that_a_container_is_given_is_in_its_config_map(overlay: Path):
    objects = rendered(overlay)
    maps = of_kind(objects, "ConfigMap")
    for name, each in of_kind(objects, "Deployment", "StatefulSet").items():
        volumes = {volume["name"]: volume for volume in pod(each)["spec"].get("volumes", ())}
        files: set[str] = set()
        for mount in container(each)["volumeMounts"]:
            volume = volumes.get(mount["name"], {})
            sources = [
                each["configMap"] for each in volume.get("projected", {}).get("sources", ()) if "configMap" in each
            ]
            for source in [*sources, *([volume["configMap"]] if "configMap" in volume else [])]:
                content = maps[source["name"]]["data"]
                keys = [wanted["key"] for wanted in source["items"]] if "items" in source else list(content)
                assert set(keys) <= content.keys(), name
                files |= {f"{mount['mountPath']}/{key}" for key in keys}
        words = " ".join([*container(each).get("command", ()), *container(each).get("args", ())])
        wanted = set(re.findall(r"(?:/etc/|/usr/local/etc/)[\w./-]+", words))
        assert wanted <= files, name


@with_kubectl
@pytest.mark.parametrize("overlay", [SINGLE, HA])
def test_only_who_needs_redis_in_compose_is_let_in_to_it(overlay: Path):
    objects = rendered(overlay)
    (rule,) = of_kind(objects, "NetworkPolicy")["redis"]["spec"]["ingress"]
    (wanted,) = [set(each["podSelector"]["matchLabels"].items()) for each in rule["from"]]
    for name, each in workloads(objects).items():
        assert (wanted <= labels(each)) == ("store" in OWN[name]["networks"]), name
    assert of_kind(objects, "NetworkPolicy")["nothing-comes-in"]["spec"] == {
        "podSelector": {},
        "policyTypes": ["Ingress"],
    }


@with_kubectl
def test_every_server_of_a_cluster_has_the_address_that_others_call_it_by():
    objects = rendered(HA)
    services = of_kind(objects, "Service")
    servers = of_kind(objects, "StatefulSet")
    pods = {f"{name}-{number}": name for name, each in servers.items() for number in range(each["spec"]["replicas"])}
    text = yaml.safe_dump_all(each for each in objects if each["kind"] in {"StatefulSet", "ConfigMap"})
    called = set(re.findall(r"\b(?:nats-\d\.nats|(?:redis|sentinel)-\d)\b", text))
    assert called == {"nats-0.nats", "nats-1.nats", "nats-2.nats", "redis-0", "sentinel-0", "sentinel-1", "sentinel-2"}
    for address in called:
        name, _, domain = address.partition(".")
        assert name in pods, address
        if domain:
            assert servers[pods[name]]["spec"]["serviceName"] == domain, address
        else:
            assert services[name]["spec"]["selector"]["statefulset.kubernetes.io/pod-name"] == name, address
    assert {f"redis-{number}" for number in range(3)} <= services.keys()
    assert all(servers[pods[each]]["spec"]["podManagementPolicy"] == "Parallel" for each in pods)


@with_kubectl
@pytest.mark.parametrize("overlay", [SINGLE, HA])
def test_secrets_are_named_and_told_of_and_none_is_contained(overlay: Path):
    objects = rendered(overlay)
    assert not of_kind(objects, "Secret")
    text = yaml.safe_dump_all(objects)
    named = set(re.findall(r"secretName: (\S+)", text))
    named |= {
        each["valueFrom"]["secretKeyRef"]["name"]
        for workload in of_kind(objects, "StatefulSet").values()
        for each in container(workload).get("env", ())
        if "secretKeyRef" in each.get("valueFrom", {})
    }
    assert named == {"dashboard-key"} | ({"nats-routes"} if overlay == HA else set())
    for name in named:
        assert f"create secret generic {name} " in TEXT, f"the page does not say how {name} is made"


def test_a_key_that_the_page_makes_signs_logins(tmp_path: Path):
    assert '--from-literal=dashboard.key="$(openssl rand -hex 32)"' in TEXT
    file = tmp_path / "dashboard.key"
    file.write_text("5e" * 32)
    assert read_key(file)


@with_kubectl
def test_the_autoscaler_reads_a_metric_and_consumers_that_exist(tmp_path: Path):
    objects = rendered(own_overlay(tmp_path / "my"))
    found = of_kind(objects, "HorizontalPodAutoscaler")
    metrics = [each["spec"]["metrics"][0]["external"]["metric"] for each in found.values()]
    assert {each["name"] for each in metrics} == {"gardenbus_consumer_pending_messages"}
    assert "`gardenbus_consumer_pending_messages`" in (ROOT / "docs" / "reference" / "metrics.md").read_text()
    for name, each in found.items():
        assert "replicas" not in of_kind(objects, "Deployment")[name]["spec"], "what is applied again would undo it"
        assert each["spec"]["minReplicas"] == 2
    consumers = {each["selector"]["matchLabels"]["consumer"] for each in metrics}
    assert consumers == {"apiserver", "scheduling-default-scheduler"}


@with_kubectl
def test_the_kustomization_of_the_page_names_every_image(tmp_path: Path):
    running = workloads(rendered(own_overlay(tmp_path / "my")))
    assert running.keys() == OWN.keys()
    for name, each in running.items():
        assert container(each)["image"] == f"registry.example.org/{OWN[name]['image']}:1.0.0"


@with_kubectl
def test_the_commands_of_the_page_name_what_is_there():
    objects = rendered(HA)
    services, running = of_kind(objects, "Service"), workloads(objects)
    for name, port in re.findall(r"port-forward service/([\w-]+) \d+:(\d+)", TEXT):
        assert int(port) in {each["port"] for each in services[name]["spec"]["ports"]}
    for name in re.findall(r"exec deploy/([\w-]+) ", TEXT):
        assert running[name]["kind"] == "Deployment"
    for file in re.findall(r"-f (deploy/\S+)", TEXT):
        assert (ROOT / file).is_file()
    assert TEXT.count("port-forward service/") == TEXT.count("exec deploy/") == 1
