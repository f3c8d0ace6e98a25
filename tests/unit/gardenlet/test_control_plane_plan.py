"""The plan of a control plane is the same for whoever carries it out."""

import pytest

from gardenbus.common.api.document import Document
from gardenbus.common.api.garden.hibernation import is_hibernation_enabled
from gardenbus.gardenlet.domain.control_plane import (
    API_SERVER,
    CONTROLLER_MANAGER,
    ETCD,
    ETCDS,
    EVENTS_ETCD,
    EVENTS_PEER,
    PORTS,
    SCHEDULER,
    ClusterParameters,
    Location,
    certificates,
    cluster_parameters,
    component_of,
    control_plane,
    least_nodes,
)

WHERE = Location("127.0.0.1", {name: 20_000 + number for number, name in enumerate(PORTS)}, "/keys", "/data", "/events")


def parameters(**spec: object) -> ClusterParameters:
    return cluster_parameters({"kubernetes": {"version": "1.34.4"}, **spec}, technical_id="shoot--dev--apollo")


def arguments_of(name: str, cluster: ClusterParameters | None = None) -> dict[str, str]:
    (component,) = [each for each in control_plane(cluster or parameters(), WHERE) if each.name == name]
    flags = (flag.removeprefix("--").partition("=") for flag in component.arguments)
    return {flag: value for flag, _, value in flags}


def test_a_shoot_without_workers_has_no_scheduler() -> None:
    assert [each.name for each in control_plane(parameters(), WHERE)] == [*ETCDS, API_SERVER, CONTROLLER_MANAGER]
    pools: Document = {"provider": {"workers": [{"name": "a", "minimum": 2}, {"name": "b", "minimum": 1}]}}
    assert [each.name for each in control_plane(parameters(**pools), WHERE)][-1] == SCHEDULER
    assert least_nodes(pools) == 3


def test_every_file_that_a_component_is_given_is_a_key_a_certificate_or_a_kubeconfig_that_is_made() -> None:
    cluster = parameters(provider={"workers": [{"name": "a"}]})
    issued = {each.name for each in certificates(cluster, WHERE.address)}
    made = {f"/keys/{name}.{kind}" for name in issued for kind in ("crt", "key")}
    made |= {f"/keys/{name}.crt" for name in ("ca", "ca-etcd", "ca-front-proxy")}
    made |= {"/keys/ca.key", "/keys/service-account.key"}
    made |= {f"/keys/{name}.kubeconfig" for name in (CONTROLLER_MANAGER, SCHEDULER)}
    named = {flag.partition("=")[2] for component in control_plane(cluster, WHERE) for flag in component.arguments}
    assert {value for value in named if value.startswith("/keys/")} <= made


def test_networks_are_the_shoots_own_or_gardeners_defaults() -> None:
    assert arguments_of(API_SERVER)["service-cluster-ip-range"] == "100.64.0.0/13"
    own = parameters(networking={"services": "10.2.0.0/16", "pods": "10.3.0.0/16"})
    assert arguments_of(API_SERVER, own)["service-cluster-ip-range"] == "10.2.0.0/16"
    assert arguments_of(CONTROLLER_MANAGER, own)["cluster-cidr"] == "10.3.0.0/16"


def test_the_api_server_is_reached_by_its_address_its_service_and_its_first_service_address() -> None:
    (server,) = [each for each in certificates(parameters(), "10.0.0.7") if each.name == API_SERVER]
    assert {"10.0.0.7", "localhost", "kubernetes.default.svc", "shoot--dev--apollo", "100.64.0.1"} <= set(server.hosts)


def test_each_component_has_a_port_a_health_check_and_a_limit_of_memory() -> None:
    for component in control_plane(parameters(provider={"workers": [{"name": "a"}]}), WHERE):
        assert component.health.port in WHERE.ports
        assert component.health.path in {"/readyz", "/healthz"}
        assert component.environment["GOMEMLIMIT"].endswith("MiB")


def test_events_have_an_etcd_of_their_own() -> None:
    port = WHERE.ports[EVENTS_ETCD]
    assert arguments_of(API_SERVER)["etcd-servers-overrides"] == f"/events#https://127.0.0.1:{port}"
    main, events = arguments_of(ETCD), arguments_of(EVENTS_ETCD)
    assert {flag for flag in main if main[flag] != events[flag]} == {
        "name",
        "data-dir",
        "initial-cluster",
        "listen-client-urls",
        "advertise-client-urls",
        "listen-peer-urls",
        "initial-advertise-peer-urls",
    }
    assert events["data-dir"] == "/events"


def test_a_control_plane_that_was_made_with_one_etcd_has_one_until_there_are_ports_for_another() -> None:
    before = WHERE._replace(ports={n: p for n, p in WHERE.ports.items() if n not in {EVENTS_ETCD, EVENTS_PEER}})
    plan = {each.name: each for each in control_plane(parameters(), before)}
    assert set(plan) == {ETCD, API_SERVER, CONTROLLER_MANAGER}
    assert not [each for each in plan[API_SERVER].arguments if "overrides" in each]


@pytest.mark.parametrize("shell", [(), ("/bin/sh",)])
def test_each_component_is_found_by_its_arguments(shell: tuple[str, ...]) -> None:
    for each in control_plane(parameters(provider={"workers": [{"name": "a"}]}), WHERE):
        assert component_of((*shell, f"/opt/{each.program}", *each.arguments)) == each.name
    assert component_of(("/bin/sleep", "600")) is None


@pytest.mark.parametrize(
    ("spec", "asleep"), [({}, False), ({"hibernation": {}}, False), ({"hibernation": {"enabled": True}}, True)]
)
def test_a_shoot_sleeps_when_it_is_told_to(spec: Document, asleep: bool) -> None:
    assert is_hibernation_enabled(spec) is asleep
