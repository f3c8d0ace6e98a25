"""What a cluster has made of the manifests of deploy/kubernetes: the objects of a real API server, and what they lack.

Its kube-controller-manager makes pods and claims; there is no node, so that pods stay Pending.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from tests.support.kubectl import Kubectl

Document = Mapping[str, Any]

KINDS = (
    "pods,deployments,statefulsets,services,secrets,configmaps,serviceaccounts,persistentvolumeclaims,"
    "poddisruptionbudgets,horizontalpodautoscalers,networkpolicies,events"
)
VARIABLES = (
    ("ConfigMap", "configMapRef"),
    ("Secret", "secretRef"),
    ("ConfigMap", "configMapKeyRef"),
    ("Secret", "secretKeyRef"),
)
OF_THE_SERVER_ITSELF = ("ipallocator-repair-controller", "portallocator-repair-controller")
"""Loops within kube-apiserver: on busy cores their informers have a new Service before the address given to it, and
they warn that it is not allocated (k8s.io/kubernetes, pkg/registry/core/service/ipallocator/controller/repairip.go)."""
PROBES = ("startupProbe", "livenessProbe", "readinessProbe")


class Landscape(NamedTuple):
    """All objects of a namespace."""

    objects: Sequence[Document]

    def of(self, *kinds: str) -> dict[str, Document]:
        """Those of these kinds, by name."""
        return {each["metadata"]["name"]: each for each in self.objects if each["kind"] in kinds}

    def selected(self, selector: Mapping[str, str]) -> list[Document]:
        """The pods with these labels."""
        pods = self.of("Pod").values()
        return [each for each in pods if selector.items() <= each["metadata"]["labels"].items()]

    def missing_pods(self) -> list[str]:
        """Workloads with fewer pods than wanted."""
        found: list[str] = []
        for name, each in self.of("Deployment", "StatefulSet").items():
            pods = self.selected(each["spec"]["selector"]["matchLabels"])
            if len(pods) != each["spec"]["replicas"]:
                found.append(f"{name}: {len(pods)} of {each['spec']['replicas']}")
        return found

    def warnings(self) -> list[str]:
        """What controllers complained of, but for the API server's own repairs of what it is about to store."""
        return [
            f"{each['involvedObject']['kind']} {each['involvedObject']['name']}: {each['message']}"
            for each in self.objects
            if each["kind"] == "Event"
            and each["type"] == "Warning"
            and each.get("reportingComponent") not in OF_THE_SERVER_ITSELF
        ]

    def dangling(self) -> Iterator[str]:
        """What is named and is not there, or selects nothing."""
        for name, pod in self.of("Pod").items():
            yield from (f"pod {name}: {each}" for each in self._lacking(pod))
        for name, each in self.of("StatefulSet").items():
            service = self.of("Service").get(each["spec"]["serviceName"])
            if service is None or service["spec"].get("clusterIP") != "None":
                yield f"statefulset {name}: no headless Service {each['spec']['serviceName']}"
        for name, each in self.of("HorizontalPodAutoscaler").items():
            target = each["spec"]["scaleTargetRef"]
            if target["name"] not in self.of(target["kind"]):
                yield f"autoscaler {name}: no {target['kind']} {target['name']}"
        yield from self._idle()

    def _idle(self) -> Iterator[str]:
        """Services and budgets that select no pod, or a port that their pods do not declare."""
        for name, each in self.of("PodDisruptionBudget").items():
            if not self.selected(each["spec"]["selector"]["matchLabels"]):
                yield f"budget {name}: selects no pod"
        for name, each in self.of("Service").items():
            pods = self.selected(each["spec"]["selector"])
            ports = {port["targetPort"] for port in each["spec"].get("ports", ())}
            if not pods or any(not ports <= declared_ports(pod) for pod in pods):
                yield f"service {name}: {sorted(map(str, ports))} of {len(pods)} pods"

    def _lacking(self, pod: Document) -> Iterator[str]:
        """What a pod references and nobody has made, and probes of ports that it does not declare."""
        for kind, name, keys in references(pod["spec"]):
            found = self.of(kind).get(name)
            if found is None:
                yield f"no {kind} {name}"
            elif lacking := [key for key in keys if key not in (found.get("data") or {})]:
                yield f"{kind} {name} has no {', '.join(lacking)}"
        for container in containers(pod["spec"]):
            for probe in PROBES:
                checked: Document = container.get(probe, {})
                requested: Document = checked.get("httpGet") or checked.get("tcpSocket") or {}
                port = requested.get("port")
                if port is not None and port not in declared_ports(pod):
                    yield f"{probe} of {container['name']} asks port {port}, which is not declared"

    def closed_ports(self) -> Iterator[str]:
        """Rules of network policies that admit nobody who is there, or a port that no selected pod has."""
        for name, each in self.of("NetworkPolicy").items():
            pods = self.selected(each["spec"]["podSelector"].get("matchLabels", {}))
            if not pods:
                yield f"policy {name}: selects no pod"
            for rule in each["spec"].get("ingress") or ():
                for port in rule.get("ports", ()):
                    if not any(port["port"] in declared_ports(pod) for pod in pods):
                        yield f"policy {name}: no pod has port {port['port']}"
                peers = [peer["podSelector"]["matchLabels"] for peer in rule["from"] if "podSelector" in peer]
                yield from (f"policy {name}: nobody is {peer}" for peer in peers if not self.selected(peer))


async def read_landscape(kubectl: Kubectl) -> Landscape:
    """Read all of a namespace."""
    listed = json.loads(await kubectl.text("get", KINDS, "-n", "gardenbus", "-o", "json"))
    return Landscape(listed["items"])


def containers(spec: Document) -> Iterable[Document]:
    """All containers of a pod."""
    return [*spec.get("initContainers", ()), *spec["containers"]]


def declared_ports(pod: Document) -> set[Any]:
    """Numbers and names of the ports that a pod's containers declare."""
    ports = [port for each in containers(pod["spec"]) for port in each.get("ports", ())]
    return {port["containerPort"] for port in ports} | {port["name"] for port in ports if "name" in port}


def references(spec: Document) -> Iterator[tuple[str, str, Sequence[str]]]:
    """Kind, name and keys of what a pod takes from others, but for what is optional."""
    yield "ServiceAccount", spec.get("serviceAccountName", "default"), ()
    for volume in spec.get("volumes", ()):
        if claim := volume.get("persistentVolumeClaim"):
            yield "PersistentVolumeClaim", claim["claimName"], ()
        for each in (volume, *volume.get("projected", {}).get("sources", ())):
            for kind, field in (("ConfigMap", "configMap"), ("Secret", "secret")):
                if source := _needed(each.get(field)):
                    keys = [item["key"] for item in source.get("items", ())]
                    yield kind, source.get("secretName") or source["name"], keys
    for container in containers(spec):
        for each in (*container.get("envFrom", ()), *(it.get("valueFrom", {}) for it in container.get("env", ()))):
            for kind, field in VARIABLES:
                if source := _needed(each.get(field)):
                    yield kind, source["name"], [source["key"]] if "key" in source else []


def _needed(source: Document | None) -> Document | None:
    return None if source is None or source.get("optional") else source
