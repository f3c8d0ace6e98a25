"""The manifests of deploy/kubernetes as kubectl renders them, and the compose files as Docker reads them."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import yaml

Document = dict[str, Any]

ROOT = Path(__file__).parents[2]
KUBERNETES = ROOT / "deploy" / "kubernetes"
COMPOSE = ROOT / "deploy" / "compose"
PAGE = ROOT / "docs" / "kubernetes.md"
_OWN = re.compile(r"(^|/)gardenbus/")
_VARIABLE = re.compile(r"\$\{\w+:-((?:[^{}]|\{[^{}]*\})*)\}")


def find_kubectl() -> str | None:
    """The kubectl of the control planes' programs, of their cache, or of this machine."""
    directories = [Path(each) for each in (os.environ.get("GARDENBUS_KUBE_BIN"),) if each]
    cached = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    directories += sorted((cached / "gardenbus" / "kube").glob("*"), reverse=True)
    return next((str(each / "kubectl") for each in directories if (each / "kubectl").exists()), shutil.which("kubectl"))


@cache
def render(directory: Path) -> str:
    """What `kubectl kustomize` makes of a directory."""
    program = find_kubectl()
    assert program is not None
    ended = subprocess.run([program, "kustomize", str(directory)], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@cache
def rendered(directory: Path) -> Sequence[Document]:
    """The objects of a directory; nobody changes them."""
    return tuple(yaml.load_all(render(directory), yaml.CSafeLoader))


def own_overlay(directory: Path) -> Path:
    """The kustomization of one's own that the page shows, in a directory."""
    (block,) = re.findall(r"```yaml\n(# my/kustomization.yaml\n.*?)```", PAGE.read_text(), re.DOTALL)
    there = os.path.relpath(ROOT / "deploy", directory)
    directory.mkdir()
    (directory / "kustomization.yaml").write_text(block.replace("../deploy/", f"{there}/"))
    return directory


class Guarded(NamedTuple):
    """An overlay, and the components by which everybody proves who they are."""

    overlay: str
    components: tuple[str, ...]


WITH_IDENTITIES = Guarded("single", ("identities",))
CLUSTER_WITH_IDENTITIES = Guarded("ha", ("identities", "cluster-identities"))


def with_components(directory: Path, guarded: Guarded) -> Path:
    """A kustomization of one's own that adds components to an overlay, in a directory."""
    there = os.path.relpath(KUBERNETES, directory)
    directory.mkdir()
    kustomization = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "namespace": "gardenbus",
        "resources": [f"{there}/overlays/{guarded.overlay}"],
        "components": [f"{there}/components/{name}" for name in guarded.components],
    }
    (directory / "kustomization.yaml").write_text(yaml.safe_dump(kustomization))
    return directory


def of_kind(objects: Iterable[Document], *kinds: str) -> dict[str, Document]:
    """Those of these kinds, by name."""
    return {each["metadata"]["name"]: each for each in objects if each["kind"] in kinds}


def workloads(objects: Iterable[Document]) -> dict[str, Document]:
    """What runs pods of Gardenbus' own, by name."""
    found = of_kind(objects, "Deployment", "StatefulSet")
    return {name: each for name, each in found.items() if _OWN.search(container(each)["image"])}


def container(workload: Document) -> Document:
    """The only container of a workload."""
    (only,) = workload["spec"]["template"]["spec"]["containers"]
    return only


def environment(workload: Document, objects: Iterable[Document]) -> dict[str, str]:
    """The variables of a workload's container; what comes from a field of the pod or from a Secret is left out."""
    maps = of_kind(objects, "ConfigMap")
    found: dict[str, str] = {}
    for each in container(workload).get("envFrom", ()):
        found |= maps[each["configMapRef"]["name"]]["data"]
    given = container(workload).get("env", ())
    return found | {each["name"]: each["value"] for each in given if "value" in each}


def uncommented(file: Path) -> str:
    """The text of a configuration file with the lines that it has as a comment at its end, behind an empty one."""
    text, _, commented = file.read_text().partition("\n#\n")
    return "\n".join([text, *(line.removeprefix("# ") for line in commented.splitlines()), ""])


def compose_services(file: str, profile: str | None = None) -> Iterator[tuple[str, Document]]:
    """The services of a compose file that this profile starts (none: those that need no profile)."""
    for name, each in yaml.safe_load((COMPOSE / file).read_text())["services"].items():
        if each.get("profiles", [None]) == [profile]:
            yield name, each


def compose_environment(service: Document) -> dict[str, str]:
    """The variables of a compose service where nobody sets any for compose itself: those without a value are absent."""
    given = service.get("environment", {})
    return {name: _without_variables(value) for name, value in given.items() if value is not None}


def _without_variables(value: str) -> str:
    while (plain := _VARIABLE.sub(r"\1", value)) != value:
        value = plain
    return value
