"""`up --backend` replaces the backend of all gardenlets that are given."""

import stat
from pathlib import Path

import pytest

from gardenbus.cli.manifests.files import sort_manifests
from gardenbus.common.errors import SettingsInvalid
from gardenbus.embedded.configurations import check_configurations, with_backend
from gardenbus.gardenlet.backend.processes.binaries import PROGRAMS
from tests.support.builders import a_gardenlet_configuration

GIVEN = sort_manifests([a_gardenlet_configuration()])


def test_a_backend_takes_the_place_of_those_in_the_configurations_and_ends_with_the_landscape(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in PROGRAMS:
        file = tmp_path / name
        file.write_text("#!/bin/sh\necho Kubernetes v1.34.4\n")
        file.chmod(file.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))
    (gardenlet,) = with_backend(GIVEN, "processes").gardenlets
    assert gardenlet["backend"] == {"type": "processes", "stepSeconds": 0.02, "keepRunning": False}
    check_configurations(with_backend(GIVEN, "processes"))


def test_a_backend_that_is_not_here_or_lacks_its_programs_is_refused_before_anything_starts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(SettingsInvalid, match="must be one of exec, local, nats, processes, is 'aws'"):
        with_backend(GIVEN, "aws")
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(SettingsInvalid, match="needs etcd"):
        with_backend(GIVEN, "processes")
