"""The profiles that a simulation schedules by: those of its files, a preset, or one of another file."""

from collections.abc import Collection, Iterable
from pathlib import Path

from gardenbus.cli.manifests.files import SCHEDULER_CONFIGURATION, read_files
from gardenbus.cli.simulate.scheduling import Profiles
from gardenbus.common.api.configuration.scheduler import parse_configuration
from gardenbus.common.api.configuration.scheduling_profiles import PRESETS
from gardenbus.common.api.document import Document, encode
from gardenbus.common.api.garden.scheduling_profiles import SchedulingProfile
from gardenbus.common.errors import BadRequest


def profiles_for(
    word: str | None, documents: Iterable[Document], own_filters: Collection[str], strategy: str
) -> Profiles:
    """The profiles for some manifests: by scheduler name, or the one that is named for all shoots.

    `strategy` is that of a preset. A name is a schedulerName among the SchedulerConfigurations, a preset, or FILE or
    FILE:NAME of one. Raises SettingsInvalid, and BadRequest for a name that there is not.
    """
    found = _profiles_in(documents, own_filters)
    if word is None:
        return Profiles(found)
    named = next((each for each in found if each.scheduler_name == word), None) or _preset(word, strategy)
    return Profiles(found, named or _of_file(word, own_filters, [each.scheduler_name for each in found]))


def profiles_of(file: Path, own_filters: Collection[str]) -> list[SchedulingProfile]:
    """The profiles that a SchedulerConfiguration serves. Raises BadRequest where a file has none, SettingsInvalid."""
    found = [each for each in read_files([file]) if each.get("kind") == SCHEDULER_CONFIGURATION]
    if not found:
        raise BadRequest(f"{file}: has no {SCHEDULER_CONFIGURATION}")
    return [profile for each in found for profile in parse_configuration(encode(each), lambda: own_filters).served]


def _profiles_in(documents: Iterable[Document], own_filters: Collection[str]) -> list[SchedulingProfile]:
    configurations = (each for each in documents if each.get("kind") == SCHEDULER_CONFIGURATION)
    parsed = (parse_configuration(encode(each), lambda: own_filters) for each in configurations)
    return [profile for each in parsed for profile in each.profiles]


def _preset(word: str, strategy: str) -> SchedulingProfile | None:
    if word not in PRESETS:
        return None
    head = {"apiVersion": "scheduler.config.gardener.cloud/v1alpha1", "kind": SCHEDULER_CONFIGURATION}
    (found,) = parse_configuration(
        encode({**head, "profiles": [{"preset": word, "candidateDeterminationStrategy": strategy}]})
    ).profiles
    return found


def _of_file(word: str, own_filters: Collection[str], names: Iterable[str]) -> SchedulingProfile:
    file, _, name = (word, "", "") if Path(word).exists() else word.rpartition(":")
    if not file or not Path(file).exists():
        raise BadRequest(f"--profile {word}: there are {', '.join((*names, *PRESETS))}, and FILE or FILE:NAME")
    found = _profiles_in(read_files([Path(file)]), own_filters)
    chosen = [each for each in found if name in ("", each.scheduler_name)]
    if len(chosen) != 1:
        served = ", ".join(each.scheduler_name for each in found) or "none"
        raise BadRequest(f"--profile {word}: name one profile of the file as {file}:NAME; it has {served}")
    return chosen[0]
