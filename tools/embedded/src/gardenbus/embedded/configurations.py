"""The services' configuration files below D/config: written from what the user gave, kept for the next `up`."""

import os
from collections.abc import Sequence
from pathlib import Path

import yaml

from gardenbus.cli.local.directory import LandscapeDirectory, write_whole
from gardenbus.cli.manifests.files import (
    SortedManifests,
    gardenlet_name,
    member_agent_name,
    read_files,
    scheduler_name,
    scheduler_names,
)
from gardenbus.common.api.configuration.admission import parse_configuration as parse_admission
from gardenbus.common.api.configuration.controller_manager import parse_controller_manager, parse_lifecycle
from gardenbus.common.api.configuration.controller_manager import parse_managed_seed_sets as parse_managedseedset
from gardenbus.common.api.configuration.gardenlet import parse_configurations as parse_gardenlets
from gardenbus.common.api.configuration.member_agent import check_together
from gardenbus.common.api.configuration.member_agent import parse_configurations as parse_member_agents
from gardenbus.common.api.configuration.scheduler import parse_configuration as parse_scheduler
from gardenbus.common.api.configuration.seed_autoscaler import parse_configuration as parse_autoscaler
from gardenbus.common.api.document import Document, encode, section
from gardenbus.common.api.garden.shoots import DEFAULT_SCHEDULER
from gardenbus.common.errors import SettingsInvalid
from gardenbus.embedded.process_specs import Configurations, in_groups
from gardenbus.gardenlet.backend.installed import installed_backends
from gardenbus.gardenlet.backend.processes.binaries import find_programs, missing_programs

DEFAULT_SCHEDULER_CONFIGURATION: Document = {
    "apiVersion": "scheduler.config.gardener.cloud/v1alpha1",
    "kind": "SchedulerConfiguration",
    "schedulers": {"shoot": {"candidateDeterminationStrategy": "SameRegion"}},
}


def check_configurations(given: SortedManifests) -> None:
    """Validate what was given with the services' own parsers; raises SettingsInvalid with all problems."""
    problems: list[str] = []
    readers = [
        *((parse_scheduler, each) for each in given.schedulers),
        *(
            (parse, each)
            for parse in (parse_controller_manager, parse_lifecycle, parse_managedseedset)
            for each in [given.controller_manager]
            if each
        ),
        *((parse_autoscaler, each) for each in [given.autoscaler] if each is not None),
        *((parse_admission, each) for each in [given.admission] if each is not None),
        *((parse_gardenlets, each) for each in given.gardenlets),
        *((parse_member_agents, each) for each in given.member_agents),
    ]
    for read, document in readers:
        try:
            read(encode(document))
        except SettingsInvalid as error:
            name = gardenlet_name(document)
            about = f"{document.get('kind')}{f' of the seed {name}' if name else ''}"
            problems += [f"{about}: {problem.removeprefix('configuration: ')}" for problem in error.problems]
    if not problems:
        together = [one for each in given.member_agents for one in parse_member_agents(encode(each))]
        problems += [f"MemberAgentConfiguration: {problem}" for problem in check_together(together)]
    if problems:
        raise SettingsInvalid(tuple(problems))


def with_backend(given: SortedManifests, name: str) -> SortedManifests:
    """Replace the backend of all gardenlets; what it runs ends together with the landscape.

    Raises SettingsInvalid when it is not installed, or needs programs that are not here.
    """
    installed = installed_backends()
    if name not in installed:
        raise SettingsInvalid((f"--backend: must be one of {', '.join(sorted(installed))}, is {name!r}",))
    gardenlets = [
        {**each, "backend": {**section(each, "backend"), "type": name, "keepRunning": False}}
        for each in given.gardenlets
    ]
    if name == "processes":
        for directory in {str(section(each, "backend").get("binaries") or "") for each in gardenlets}:
            if not find_programs(directory, os.environ):
                raise SettingsInvalid((f"--backend processes {missing_programs(directory, os.environ)}",))
    return given._replace(gardenlets=gardenlets)


def write_configurations(directory: LandscapeDirectory, given: SortedManifests) -> tuple[Configurations, list[str]]:
    """Write what was given over what was there; returns the files and the seeds that have a gardenlet.

    A gardenlet of last time goes on unless its seed has a new configuration, and so does a scheduler.
    """
    schedulers = _write_schedulers(directory.config, given.schedulers)
    kept = directory.config / "gardenlets.yaml"
    gardenlets = {gardenlet_name(each): each for each in (read_files([kept]) if kept.exists() else [])}
    gardenlets |= {gardenlet_name(each): each for each in given.gardenlets}
    ordered = [gardenlets[name] for name in sorted(gardenlets)]
    if given.gardenlets:
        _write(kept, ordered)
    return Configurations(
        schedulers=schedulers,
        controller_manager=_written(directory.config / "controller-manager.yaml", given.controller_manager),
        autoscaler=_written(directory.config / "autoscaler.yaml", given.autoscaler),
        admission=_written(directory.config / "admission.yaml", given.admission),
        strategy=_default_strategy(schedulers[DEFAULT_SCHEDULER]),
        gardenlets=_write_groups(directory.config, ordered),
        member_agents=_write_member_agents(directory.config, given.member_agents),
    ), sorted(gardenlets)


def _written(file: Path, given: Document | None) -> Path | None:
    """The file with what was given, or what was there; None where there is neither."""
    if given is not None:
        _write(file, [given])
    return file if file.exists() else None


def _write_schedulers(folder: Path, given: Sequence[Document]) -> dict[str, Path]:
    """A file for each scheduler, by schedulerName; there is always one of the default name, which comes first."""
    kept = sorted(folder.glob("scheduler*.yaml"))
    served = {name for each in given for name in scheduler_names(each)}
    earlier = [each for each in read_files(kept) if served.isdisjoint(scheduler_names(each))]
    schedulers = {DEFAULT_SCHEDULER: DEFAULT_SCHEDULER_CONFIGURATION}
    schedulers |= {scheduler_name(each): each for each in [*earlier, *given]}
    files = {
        name: folder / ("scheduler.yaml" if name == DEFAULT_SCHEDULER else f"scheduler@{name}.yaml")
        for name in (DEFAULT_SCHEDULER, *sorted(schedulers.keys() - {DEFAULT_SCHEDULER}))
    }
    for name, file in files.items():
        _write(file, [schedulers[name]])
    for old in set(kept) - set(files.values()):
        old.unlink()
    return files


def _default_strategy(file: Path) -> str:
    """The strategy of the default scheduler."""
    profiles = parse_scheduler(file.read_bytes()).served
    return next(each.strategy for each in profiles if each.scheduler_name == DEFAULT_SCHEDULER)


def _write_member_agents(folder: Path, given: Sequence[Document]) -> list[Path]:
    """A file for each configuration; those of last time go on unless there is a new one of their name."""
    kept = folder / "memberagents.yaml"
    agents = {member_agent_name(each): each for each in (read_files([kept]) if kept.exists() else [])}
    agents |= {member_agent_name(each): each for each in given}
    ordered = [agents[name] for name in sorted(agents)]
    if given:
        _write(kept, ordered)
    for old in folder.glob("memberagent-*.yaml"):
        old.unlink()
    files = [folder / f"memberagent-{number}.yaml" for number in range(1, len(ordered) + 1)]
    for file, document in zip(files, ordered, strict=True):
        _write(file, [document])
    return files


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
