"""Programs of a control plane on this machine: where they are, and of which version.

    backend.binaries      a directory with the programs, or with one directory a version (`v1.34.4`)
    $KUBEBUILDER_ASSETS   a directory with the programs
    PATH

The first of these that is set, or that has a kube-apiserver, is used.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from gardenbus.gardenlet.domain.control_plane import API_SERVER, CONTROLLER_MANAGER, ETCD, SCHEDULER

ETCDCTL, ETCDUTL = "etcdctl", "etcdutl"
PROGRAMS = (ETCD, ETCDCTL, ETCDUTL, API_SERVER, CONTROLLER_MANAGER, SCHEDULER)
ASSETS_VARIABLE = "KUBEBUILDER_ASSETS"
_VERSION = re.compile(r"Kubernetes v([0-9]+\.[0-9]+\.[0-9]+\S*)")
_VERSION_SECONDS = 20.0

Programs = Mapping[str, Path]
"""Programs of one version, by name."""


def find_programs(configured: str, environ: Mapping[str, str]) -> Mapping[str, Programs]:
    """Programs by Kubernetes version, newest first; empty without any. Runs each program of Kubernetes (0.1 s)."""
    found: dict[str, Programs] = {}
    for directory in _directories(configured, environ):
        programs = {name: directory / name for name in PROGRAMS if os.access(directory / name, os.X_OK)}
        version = _version(programs) if len(programs) == len(PROGRAMS) else None
        if version is not None:
            found.setdefault(version, {name: path.absolute() for name, path in programs.items()})
    return {version: found[version] for version in sorted(found, key=_order, reverse=True)}


def missing_programs(configured: str, environ: Mapping[str, str]) -> str:
    """Sentence about what was searched for, and where."""
    places = [str(each) for each in _directories(configured, environ)]
    return (
        f"needs {', '.join(PROGRAMS)} of one version in one directory; searched {', '.join(places) or 'PATH'} "
        f"(set backend.binaries, ${ASSETS_VARIABLE} or PATH)"
    )


def _directories(configured: str, environ: Mapping[str, str]) -> list[Path]:
    if configured:
        directory = Path(configured).expanduser()
        return [directory, *sorted(each for each in directory.glob("v*") if each.is_dir())]
    if assets := environ.get(ASSETS_VARIABLE):
        return [Path(assets)]
    first = shutil.which(API_SERVER, path=environ.get("PATH"))
    return [Path(first).parent] if first else []


def _version(programs: Programs) -> str | None:
    """The version of all programs of Kubernetes; None where they differ, or one does not say its own."""
    files = {programs[name].resolve(): programs[name] for name in (API_SERVER, CONTROLLER_MANAGER, SCHEDULER)}
    versions = {_version_of(program) for program in files.values()}
    return versions.pop() if len(versions) == 1 else None


def _version_of(program: Path) -> str | None:
    try:
        ended = subprocess.run(  # noqa: S603  a program that the operator named
            [program, "--version"], capture_output=True, text=True, timeout=_VERSION_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = _VERSION.search(ended.stdout)
    return match.group(1) if match else None


def _order(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"[0-9]+", version)]
