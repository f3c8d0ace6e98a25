"""What admission may ask about other objects, and what was found."""

from collections.abc import Mapping, Sequence

import msgspec

from gardenbus.common.resources.document import Document
from gardenbus.common.resources.keys import ObjectKey


class ObjectQuery(msgspec.Struct, frozen=True, tag=True):
    """Fetch one object (its whole manifest)."""

    key: ObjectKey


class ProjectQuery(msgspec.Struct, frozen=True, tag=True):
    """Find the Project whose spec.namespace this is."""

    namespace: str


class HostQuery(msgspec.Struct, frozen=True, tag=True):
    """Fetch the Seed that a shoot is on (by its spec.seedName)."""

    shoot: ObjectKey


class StandingQuery(msgspec.Struct, frozen=True, tag=True):
    """Find the ManagedSeed that stands on a shoot."""

    shoot: ObjectKey


class GuestsQuery(msgspec.Struct, frozen=True, tag=True):
    """Fetch the shoots that are on a seed (by their spec.seedName or status.seedName)."""

    seed: str


FactQuery = ObjectQuery | ProjectQuery | HostQuery | StandingQuery | GuestsQuery


class Facts(msgspec.Struct, frozen=True):
    """What was found; what is missing was not there.

    `objects` by key (hosts too), `projects` by their namespace, `standing`: ManagedSeeds by the shoot that they stand
    on, `guests`: the shoots on a seed, by its name.
    """

    objects: Mapping[ObjectKey, Document] = {}
    projects: Mapping[str, Document] = {}
    standing: Mapping[ObjectKey, Document] = {}
    guests: Mapping[str, Sequence[Document]] = {}
