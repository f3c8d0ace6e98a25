"""Real control planes: their programs, and what is left of them."""

import os
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

from gardenbus.gardenlet.backend.processes.binaries import find_programs, missing_programs
from tests.support.control_plane_processes import end_all_below
from tests.support.kubernetes_api import KubernetesApi, a_kubernetes_api

BINARIES = "GARDENBUS_KUBE_BIN"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All tests here need the programs; with the variable set they must be there."""
    here = f"{Path(__file__).parent}{os.sep}"
    for each in items:
        if str(each.path).startswith(here):
            each.add_marker(pytest.mark.kube)


@pytest.fixture(scope="session")
def binaries() -> str:
    """The directory of the programs of a control plane."""
    directory = os.environ.get(BINARIES, "")
    if not directory:
        pytest.skip(f"{BINARIES} names no directory with etcd, kube-apiserver and others: .ci/kube builds them")
    if not find_programs(directory, {}):
        pytest.fail(f"{BINARIES}: {missing_programs(directory, {})}")
    return directory


@pytest.fixture(autouse=True)
def no_leftovers(tmp_path: Path) -> Generator[None]:
    """End what a test that failed has left behind."""
    yield
    end_all_below(tmp_path)


@pytest.fixture(scope="session")
def kubernetes_api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KubernetesApi]:
    """A landscape with the example for the clients of its Kubernetes API; each has objects of its own there."""
    yield from a_kubernetes_api(tmp_path_factory.mktemp("api"))
