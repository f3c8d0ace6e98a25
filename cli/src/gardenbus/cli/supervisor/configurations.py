"""The services' configuration files below D/config: written from what the user gave, kept for the next `up`."""

from collections.abc import Sequence
from pathlib import Path

import yaml

from gardenbus.cli.documents import Sorted, gardenlet_name, read_files
from gardenbus.cli.supervisor.directory import LandscapeDirectory, write_whole
from gardenbus.cli.supervisor.plan import Configurations, in_groups
from gardenbus.common.resources.document import Document

DEFAULT_SCHEDULER_CONFIGURATION: Document = {
    "apiVersion": "scheduler.config.gardener.cloud/v1alpha1",
    "kind": "SchedulerConfiguration",
    "schedulers": {"shoot": {"candidateDeterminationStrategy": "SameRegion"}},
}


def write_configurations(directory: LandscapeDirectory, given: Sorted) -> tuple[Configurations, list[str]]:
    """Write what was given over what was there; answers the files and the seeds that have a gardenlet.

    A gardenlet of last time goes on unless its seed has a new configuration.
    """
    scheduler = directory.config / "scheduler.yaml"
    if given.scheduler is not None:
        _write(scheduler, [given.scheduler])
    elif not scheduler.exists():
        _write(scheduler, [DEFAULT_SCHEDULER_CONFIGURATION])
    lifecycle = directory.config / "lifecycle.yaml"
    if given.controller_manager is not None:
        _write(lifecycle, [given.controller_manager])
    known = directory.config / "gardenlets.yaml"
    gardenlets = {gardenlet_name(each): each for each in (read_files([known]) if known.exists() else [])}
    gardenlets |= {gardenlet_name(each): each for each in given.gardenlets}
    ordered = [gardenlets[name] for name in sorted(gardenlets)]
    if given.gardenlets:
        _write(known, ordered)
    return Configurations(
        scheduler=scheduler,
        lifecycle=lifecycle if lifecycle.exists() else None,
        gardenlets=_write_groups(directory.config, ordered),
    ), sorted(gardenlets)


def _write_groups(folder: Path, gardenlets: Sequence[Document]) -> list[Path]:
    for old in folder.glob("gardenlet-*.yaml"):
        old.unlink()
    files: list[Path] = []
    for number, group in enumerate(in_groups(len(gardenlets)), 1):
        files.append(folder / f"gardenlet-{number}.yaml")
        _write(files[-1], gardenlets[group])
    return files


def _write(file: Path, documents: Sequence[Document]) -> None:
    write_whole(file, yaml.safe_dump_all(documents, sort_keys=False).encode())
