"""nats-server knows how much memory it has: Go lets garbage grow, and a container ends who takes more."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from gardenbus.embedded.servers import go_memory_limit
from tests.support.kubernetes_manifests import COMPOSE, KUBERNETES, compose_environment, compose_services

UNITS = {"M": 2**20, "Mi": 2**20, "MiB": 2**20, "G": 2**30, "Gi": 2**30, "GiB": 2**30}


def in_bytes(quantity: str) -> int:
    number, unit = re.fullmatch(r"(\d+)([A-Za-z]+)", quantity).groups()  # pyright: ignore[reportOptionalMemberAccess]
    return int(number) * UNITS[unit]


def deployed() -> Iterator[tuple[str, str, str]]:
    """Each nats-server of the deployments: where it is, what its container may have, and GOMEMLIMIT."""
    base: dict[str, str] = {}
    for file in ("compose.yaml", "cluster.yaml"):
        for name, service in compose_services(file):
            if name.startswith("nats"):
                memory = service.get("deploy", {}).get("resources", {}).get("limits", {}).get("memory") or base[name]
                base.setdefault(name, memory)
                yield f"{file}: {name}", memory, compose_environment(service).get("GOMEMLIMIT", "")
    for document in yaml.safe_load_all((KUBERNETES / "base" / "nats.yaml").read_text()):
        if document["kind"] == "StatefulSet":
            (container,) = document["spec"]["template"]["spec"]["containers"]
            given = {each["name"]: each.get("value", "") for each in container.get("env", ())}
            yield "kubernetes", container["resources"]["limits"]["memory"], given.get("GOMEMLIMIT", "")


def test_the_deployments_tell_go_of_most_of_what_the_container_may_have():
    found = list(deployed())
    assert len(found) == 5
    for where, limit, stated in found:
        assert stated, where
        assert 0.8 <= in_bytes(stated) / in_bytes(limit) <= 0.9, where


def test_no_other_file_gives_the_server_another_limit():
    files = [*COMPOSE.rglob("*.yaml"), *KUBERNETES.rglob("*.yaml")]
    having = {file.relative_to(COMPOSE.parent).as_posix() for file in files if "GOMEMLIMIT" in file.read_text()}
    assert having == {"compose/compose.yaml", "compose/cluster.yaml", "kubernetes/base/nats.yaml"}


@pytest.mark.parametrize(("limit", "expected"), [("2147483648\n", 1024), ("max\n", 1500), (None, 1500)])
def test_an_embedded_server_gets_half_of_what_a_container_may_have_or_a_quarter_of_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str | None, expected: int
):
    monkeypatch.delenv("GOMEMLIMIT", raising=False)
    monkeypatch.setattr("os.sysconf", {"SC_PAGE_SIZE": 2**20, "SC_PHYS_PAGES": 6000}.__getitem__)
    file = tmp_path / "memory.max"
    if limit is not None:
        file.write_text(limit)
    assert go_memory_limit(limit=file) == {"GOMEMLIMIT": f"{expected}MiB"}
    assert go_memory_limit(4, file) == {"GOMEMLIMIT": f"{expected // 4}MiB"}


def test_an_embedded_server_on_a_large_machine_gets_two_gibibytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("GOMEMLIMIT", raising=False)
    monkeypatch.setattr("os.sysconf", {"SC_PAGE_SIZE": 2**20, "SC_PHYS_PAGES": 60_000}.__getitem__)
    assert go_memory_limit(limit=tmp_path / "memory.max") == {"GOMEMLIMIT": "2048MiB"}


def test_what_the_shell_says_of_memory_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("GOMEMLIMIT", "300MiB")
    file = tmp_path / "memory.max"
    file.write_text("2147483648\n")
    assert go_memory_limit(limit=file) == {}
