"""Network policies of a shoot's namespace on its seed, compared with Gardener's by value."""

import pytest

from gardenbus.common.api.document import Document, section
from gardenbus.gardenlet.domain.extension_objects.network_policies import network_policies

SEED: Document = {
    "spec": {
        "networks": {
            "pods": "10.1.0.0/16",
            "services": "10.2.0.0/16",
            "nodes": "172.18.0.0/24",
            "blockCIDRs": ["169.254.169.254/32"],
        }
    }
}
SHOOT: Document = {
    "spec": {
        "networking": {"nodes": "10.10.0.0/16", "pods": "100.96.0.0/11", "services": "192.168.0.0/17"},
    }
}
API_SERVER: Document = {
    "subsets": [{"addresses": [{"ip": "10.0.0.1"}, {"ip": "10.0.0.1"}], "ports": [{"port": 443, "protocol": "TCP"}]}]
}


def specs(seed: Document = SEED, shoot: Document = SHOOT, api_server: Document | None = API_SERVER) -> Document:
    policies = network_policies("shoot--dev--apollo", seed, shoot, api_server)
    return {section(each, "metadata")["name"]: each["spec"] for each in policies}


def allowed(name: str, *egress: Document) -> Document:
    return {
        "podSelector": {"matchLabels": {f"networking.gardener.cloud/{name}": "allowed"}},
        "egress": list(egress),
        "ingress": [],
        "policyTypes": ["Egress"],
    }


def block(cidr: str, *exceptions: str) -> Document:
    return {"ipBlock": {"cidr": cidr, **({"except": list(exceptions)} if exceptions else {})}}


def test_the_policies_have_gardeners_values() -> None:
    system = {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}}
    assert specs() == {
        "deny-all": {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]},
        "allow-to-runtime-apiserver": allowed(
            "to-runtime-apiserver", {"to": [block("10.0.0.1/32")], "ports": [{"port": 443, "protocol": "TCP"}]}
        ),
        "allow-to-public-networks": allowed(
            "to-public-networks",
            {
                "to": [
                    block(
                        "0.0.0.0/0",
                        *("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "169.254.169.254/32"),
                    ),
                    block("::/0", "fe80::/10", "fc00::/7"),
                ]
            },
        ),
        "allow-to-private-networks": allowed(
            "to-private-networks",
            {
                "to": [
                    block("10.0.0.0/8", "10.1.0.0/16", "10.2.0.0/16", "10.10.0.0/16"),
                    block("172.16.0.0/12", "172.18.0.0/24"),
                    block("192.168.0.0/16", "192.168.0.0/17"),
                    block("100.64.0.0/10", "100.96.0.0/11"),
                ]
            },
            {"to": [block("fe80::/10"), block("fc00::/7")]},
        ),
        "allow-to-blocked-cidrs": allowed("to-blocked-cidrs", {"to": [block("169.254.169.254/32")]}),
        "allow-to-dns": allowed(
            "to-dns",
            {
                "to": [
                    *(
                        {
                            "namespaceSelector": system,
                            "podSelector": {
                                "matchExpressions": [{"key": "k8s-app", "operator": "In", "values": [each]}]
                            },
                        }
                        for each in ("kube-dns", "node-local-dns")
                    ),
                    block("169.254.20.10/32"),
                    block("fd30:1319:f1e:230b::1/128"),
                    block("10.2.0.10/32"),
                ],
                "ports": [
                    {"protocol": "UDP", "port": 53},
                    {"protocol": "TCP", "port": 53},
                    {"protocol": "UDP", "port": 8053},
                    {"protocol": "TCP", "port": 8053},
                ],
            },
        ),
    }


def test_networks_of_a_seed_with_two_families_are_blocked_by_name_alone() -> None:
    networks = {**SEED["spec"]["networks"], "ipFamilies": ["IPv4", "IPv6"]}
    found = specs({"spec": {"networks": networks}}, {"spec": {}})
    assert found["allow-to-private-networks"]["egress"][0]["to"][0] == block("10.0.0.0/8")


def test_a_seed_whose_api_has_no_endpoints_lets_nobody_reach_it() -> None:
    assert specs(api_server=None)["allow-to-runtime-apiserver"]["egress"] == []


def test_what_is_no_network_is_named() -> None:
    with pytest.raises(ValueError, match="nonsense"):
        specs({"spec": {"networks": {"services": "nonsense"}}})
