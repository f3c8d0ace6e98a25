"""What people's own manifests and scripts met, each on one landscape: scripts that check themselves, and manifests."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from gardenbus.common.api.document import Document
from tests.support.commands import INSTALLED, gardenbus_program
from tests.support.shared_files import required_shared

ENDS_A_HANG = 300
"""Seconds after which a command has hung; none takes a tenth of them."""

SCRIPTS = {
    *(
        "02-image-provider-config.sh",
        "03-kept-once-placed.sh",
        "04-nodes-may-change.sh",
        "06-project-profile.sh",
        "07-pool-skips-minors.sh",
    ),
    *("12-null-again.sh", "14-sort-by-quantity.sh", "17-kubectl-habits.sh", "18-messages.sh"),
}


class Landscape:
    """The landscape of the cases, by its command."""

    def __init__(self, directory: Path, cases: Path) -> None:
        self._directory, self.cases = directory, cases
        directories = f"{gardenbus_program().parent}{os.pathsep}{INSTALLED.parent}"
        self._environment = {**os.environ, "PATH": f"{directories}{os.pathsep}{os.environ['PATH']}"}

    def run(self, *words: str, body: str | None = None) -> subprocess.CompletedProcess[str]:
        """Run a command there."""
        return subprocess.run(
            words,
            env=self._environment,
            cwd=self.cases,
            input=body,
            capture_output=True,
            text=True,
            check=False,
            timeout=ENDS_A_HANG,
        )

    def gardenbus(self, *words: str, body: str | None = None) -> subprocess.CompletedProcess[str]:
        """Run `gardenbus` on it."""
        return self.run("gardenbus", *words, "--dir", str(self._directory), body=body)

    def script(self, name: str) -> subprocess.CompletedProcess[str]:
        """Run a script of the cases on it."""
        return self.run("sh", name, "--dir", str(self._directory))

    def applied(self, documents: Sequence[Document], *, dry: bool = True) -> tuple[Sequence[Document], str]:
        """Apply manifests: what is stored, or would be, and what is reported on standard error."""
        body = yaml.safe_dump_all(documents)
        done = self.gardenbus("apply", "-f", "-", "-o", "yaml", *(["--dry-run=server"] if dry else []), body=body)
        stored: Any = yaml.safe_load(done.stdout) or {"kind": "List", "items": []}
        return stored["items"] if stored["kind"] == "List" else [stored], done.stderr


@pytest.fixture(scope="module")
def landscape(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Landscape]:
    cases = required_shared("field")
    if shutil.which("sh") is None:
        pytest.skip("the scripts want a shell")
    directory = tmp_path_factory.mktemp("field") / "landscape"
    found = Landscape(directory, cases)
    started = found.gardenbus("up", "-f", str(cases / "landscape.yaml"), "--detach")
    try:
        assert started.returncode == 0, started.stderr
        yield found
    finally:
        found.gardenbus("down")


def documents_of(landscape: Landscape, name: str) -> list[Document]:
    return list(yaml.safe_load_all((landscape.cases / name).read_text()))


@pytest.mark.parametrize("name", sorted(SCRIPTS))
def test_a_script_finds_nothing_wrong(landscape: Landscape, name: str) -> None:
    done = landscape.script(name)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ok" in done.stdout


def pools_of(shoot: Document) -> list[Document]:
    return shoot["spec"]["provider"]["workers"]


def versions_of(shoot: Document) -> tuple[str, list[tuple[str | None, str]]]:
    own = [(each.get("kubernetes", {}).get("version"), each["machine"]["image"]["version"]) for each in pools_of(shoot)]
    return shoot["spec"]["kubernetes"]["version"], own


def test_versions_in_part_are_completed(landscape: Landscape) -> None:
    (shoot,) = documents_of(landscape, "01-partial-versions.yaml")
    ((stored,), _) = landscape.applied([shoot])
    assert versions_of(stored) == ("1.33.5", [("1.33.5", "1592.9.0"), (None, "1592.9.0")])
    followers = [{name: part for name, part in pool.items() if name != "kubernetes"} for pool in pools_of(shoot)]
    for version, stored_version in (("1", "1.34.1"), ("1.31", None)):
        provider = {**shoot["spec"]["provider"], "workers": followers}
        spec = {**shoot["spec"], "provider": provider, "kubernetes": {"version": version}}
        found, reported = landscape.applied([{**shoot, "spec": spec}])
        assert [versions_of(each)[0] for each in found] == ([] if stored_version is None else [stored_version])
        assert stored_version is not None or "spec.kubernetes.version" in reported


def test_deprecated_versions_are_no_defaults(landscape: Landscape) -> None:
    (shoot,) = documents_of(landscape, "05-deprecated-defaults.yaml")
    for given, expected in ((None, "1.34.1"), ("1.33", "1.33.5"), ("1.32", None)):
        spec = {**shoot["spec"], **({"kubernetes": {"version": given}} if given else {})}
        stored, reported = landscape.applied([{**shoot, "spec": spec}])
        versions = [] if expected is None else [(expected, [(None, "1592.9.0")])]
        assert [versions_of(each) for each in stored] == versions
        assert expected is not None or "spec.kubernetes.version" in reported


def test_a_pool_of_an_arm_type_needs_no_architecture(landscape: Landscape) -> None:
    ((stored,), _) = landscape.applied(documents_of(landscape, "08-arm-without-architecture.yaml"))
    assert pools_of(stored)[0]["machine"]["architecture"] == "arm64"


def test_the_limit_of_nodes_bounds_the_minimum(landscape: Landscape) -> None:
    (shoot,) = documents_of(landscape, "09-more-than-max-nodes.yaml")
    assert landscape.applied([shoot])[0]
    pools_of(shoot)[0]["minimum"] = 6
    assert "spec.provider.workers" in landscape.applied([shoot])[1]


def test_placements_of_v1_are_stored_with_every_field(landscape: Landscape) -> None:
    given = documents_of(landscape, "10-placement-v1.yaml")
    stored, reported = landscape.applied(given, dry=False)
    assert len(stored) == len(given), reported
    found = landscape.gardenbus("get", "crp.v1.placement.kubernetes-fleet.io", "lights", "-o", "yaml")
    returned = yaml.safe_load(found.stdout)
    assert returned["apiVersion"] == "placement.kubernetes-fleet.io/v1"
    assert returned["spec"]["strategy"]["applyStrategy"] == given[1]["spec"]["strategy"]["applyStrategy"]
    again = landscape.gardenbus("apply", "-f", "10-placement-v1.yaml")
    assert re.findall(r" (\w+)$", again.stdout, re.MULTILINE) == ["unchanged"] * len(given)


def test_names_of_rbac_are_taken_and_selected(landscape: Landscape) -> None:
    given = documents_of(landscape, "11-rbac-names.yaml")
    stored, reported = landscape.applied(given, dry=False)
    assert len(stored) == len(given), reported
    role = {**given[1], "metadata": {"name": "lights/reader"}}
    assert "metadata.name" in landscape.applied([role])[1]


def test_a_placement_without_its_resources_names_them_until_they_are_there(landscape: Landscape) -> None:
    landscape.applied(documents_of(landscape, "15-missing-resource.yaml"), dry=False)
    condition = "condition=ClusterResourcePlacementResourcesFound=False"
    waited = landscape.gardenbus("wait", "crp", "misspelt", "--for", condition, "--timeout", "2m")
    assert waited.returncode == 0, waited.stderr
    described = landscape.gardenbus("describe", "crp", "misspelt").stdout
    assert "Namespace lihgts" in described


def test_what_gardener_rejects_is_rejected_by_the_field(landscape: Landscape) -> None:
    fields = {
        "plugin": "kubeAPIServer.admissionPlugins[0].name",
        "needed": "kubeAPIServer.admissionPlugins[0].disabled",
        "gate": "kubelet.featureGates.NoSuchGate",
        "mask": "kubeControllerManager.nodeCIDRMaskSize",
        "zones": "workers[0].maximum",
        "typeless": "networking.type",
        "ending": "versions[0].expirationDate",
        "twice": "members[1]",
    }
    for document in documents_of(landscape, "16-static-rules.yaml"):
        stored, reported = landscape.applied([document])
        assert not stored
        assert fields[document["metadata"]["name"]] in reported
