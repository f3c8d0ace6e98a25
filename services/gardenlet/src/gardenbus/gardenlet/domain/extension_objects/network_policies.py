"""Network policies of the namespace of a shoot's control plane: nothing is let in or out that no label lets out.

Source: Gardener's `pkg/controller/networkpolicy` of v1.149; names, texts and values are those.
"""

import ipaddress
from collections.abc import Iterable, Mapping, Sequence

from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import mappings

_DESCRIPTION = "gardener.cloud/description"
_LABEL = "networking.gardener.cloud/to-{}"
_PRIVATE_V4 = ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10")
_PRIVATE_V6 = ("fe80::/10", "fc00::/7")
_NODE_LOCAL_DNS = ("169.254.20.10/32", "fd30:1319:f1e:230b::1/128")
_DNS_PORTS = (53, 8053)
_DNS_OFFSET = 10
"""Place of the DNS server's address in the network of services."""

_ALLOWED: Mapping[str, str] = {
    "runtime-apiserver": (
        "Allows egress traffic from pods labeled with '{}' to the endpoints in the default namespace of the "
        "kube-apiserver of the runtime cluster."
    ),
    "public-networks": (
        "Allows egress from pods labeled with '{}' to all public network IPs, except for private networks (RFC1918), "
        "carrier-grade NAT (RFC6598), and explicitly blocked addresses configured by human operators. In practice, "
        "this blocks egress traffic to all networks in the cluster and only allows egress traffic to public IPv4 "
        "addresses."
    ),
    "private-networks": (
        "Allows egress from pods labeled with '{}' to the private networks (RFC1918) and carrier-grade NAT (RFC6598), "
        "except for cluster-specific networks."
    ),
    "blocked-cidrs": (
        "Allows egress from pods labeled with '{}' to explicitly blocked addresses configured by human operators."
    ),
    "dns": (
        "Allows egress from pods labeled with '{}' to DNS running in 'kube-system'. In practice, most of the pods "
        "which require network egress need this label."
    ),
}
"""Descriptions of what pods with a label may reach, by the end of that label."""


def network_policies(namespace: str, seed: Document, shoot: Document, api_server: Document | None) -> list[Document]:
    """The policies. `api_server`: the Endpoints `kubernetes` of the seed. Raises ValueError for what is no network."""
    networks = section(seed, "spec", "networks")
    families: list[str] = networks.get("ipFamilies") or ["IPv4"]
    blocked: list[str] = networks.get("blockCIDRs") or []
    own = [str(networks[field]) for field in ("pods", "services", "nodes") if networks.get(field)]
    blocked_v4 = [*blocked, *(own if families == ["IPv4"] else ())]
    blocked_v6 = [*blocked, *(own if families == ["IPv6"] else ())]
    networking = section(shoot, "spec", "networking")
    of_shoot = [str(networking[field]) for field in ("nodes", "pods", "services") if networking.get(field)]
    is_v4 = (networking.get("ipFamilies") or ["IPv4"]) == ["IPv4"]
    private_v4 = _blocks(_PRIVATE_V4, [*blocked_v4, *(of_shoot if is_v4 else ())])
    private_v6 = _blocks(_PRIVATE_V6, [*blocked_v6, *(() if is_v4 else of_shoot)])
    public = _blocks(("0.0.0.0/0",), [*_PRIVATE_V4, *blocked]) + _blocks(("::/0",), [*_PRIVATE_V6, *blocked_v6])
    egress: Mapping[str, list[Document]] = {
        "runtime-apiserver": [_to_subset(each) for each in mappings((api_server or {}).get("subsets"))],
        "public-networks": [{"to": public}],
        "private-networks": [{"to": private_v4}, {"to": private_v6}],
        "blocked-cidrs": [{"to": [{"ipBlock": {"cidr": each}}]} for each in blocked],
        "dns": [_to_dns(str(networks.get("services") or ""))],
    }
    deny: Document = {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    return [
        _policy(namespace, "deny-all", "Disables all ingress and egress traffic into/from this namespace.", deny),
        *(_allowing(namespace, target, text, egress[target]) for target, text in _ALLOWED.items()),
    ]


def _to_dns(services: str) -> Document:
    pods: list[Document] = [
        {
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}},
            "podSelector": {"matchExpressions": [{"key": "k8s-app", "operator": "In", "values": [each]}]},
        }
        for each in ("kube-dns", "node-local-dns")
    ]
    server = ipaddress.ip_network(services, strict=False).network_address + _DNS_OFFSET
    addresses = (*_NODE_LOCAL_DNS, f"{server}/{server.max_prefixlen}")
    ports = [{"protocol": protocol, "port": port} for port in _DNS_PORTS for protocol in ("UDP", "TCP")]
    return {"to": [*pods, *({"ipBlock": {"cidr": each}} for each in addresses)], "ports": ports}


def _to_subset(subset: Document) -> Document:
    addresses = dict.fromkeys(ipaddress.ip_address(str(each.get("ip"))) for each in mappings(subset.get("addresses")))
    ports = [
        {"port": each.get("port"), "protocol": each.get("protocol") or "TCP"} for each in mappings(subset.get("ports"))
    ]
    return {"to": [{"ipBlock": {"cidr": f"{each}/{each.max_prefixlen}"}} for each in addresses], "ports": ports}


def _blocks(networks: Sequence[str], exceptions: Iterable[str]) -> list[Document]:
    """Networks, each without those of the exceptions that are within it."""
    parsed = [ipaddress.ip_network(each, strict=False) for each in exceptions]
    found: list[Document] = []
    for each in networks:
        network = ipaddress.ip_network(each)
        within = [
            str(other)
            for other in parsed
            if other.version == network.version
            and other.prefixlen > network.prefixlen
            and other.network_address in network
        ]
        found.append({"ipBlock": {"cidr": each, **({"except": within} if within else {})}})
    return found


def _allowing(namespace: str, target: str, text: str, egress: list[Document]) -> Document:
    label = _LABEL.format(target)
    spec: Document = {
        "podSelector": {"matchLabels": {label: "allowed"}},
        "egress": egress,
        "ingress": [],
        "policyTypes": ["Egress"],
    }
    return _policy(namespace, f"allow-to-{target}", text.format(f"{label}=allowed"), spec)


def _policy(namespace: str, name: str, description: str, spec: Document) -> Document:
    metadata = {"name": name, "namespace": namespace, "annotations": {_DESCRIPTION: description}}
    return {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": metadata, "spec": spec}
