"""Queries of admission for other objects, and their results."""

from collections.abc import Mapping, Sequence

import msgspec

from gardenbus.common.api.document import Document
from gardenbus.common.api.keys import ObjectKey


class ObjectQuery(msgspec.Struct, frozen=True, tag=True):
    """Fetch one object (its whole manifest)."""

    key: ObjectKey


class ProjectQuery(msgspec.Struct, frozen=True, tag=True):
    """Find the Project whose spec.namespace this is."""

    namespace: str


class SeedOfShootQuery(msgspec.Struct, frozen=True, tag=True):
    """Fetch the Seed that a shoot is on (by its spec.seedName)."""

    shoot: ObjectKey


class ManagedSeedOfShootQuery(msgspec.Struct, frozen=True, tag=True):
    """Find the ManagedSeed of a shoot."""

    shoot: ObjectKey


class ShootsOnSeedQuery(msgspec.Struct, frozen=True, tag=True):
    """Fetch the shoots that are on a seed (by their spec.seedName or status.seedName)."""

    seed: str


class ProfilesBelowQuery(msgspec.Struct, frozen=True, tag=True):
    """Fetch the NamespacedCloudProfiles below a CloudProfile."""

    cloud_profile: str


class KindQuery(msgspec.Struct, frozen=True, tag=True):
    """Fetch all objects of a kind, of which there are few."""

    kind: str


class QuotasQuery(msgspec.Struct, frozen=True, tag=True):
    """Fetch bindings, the Quotas that they name, what shoots want of each, and the profiles that this depends on."""

    bindings: tuple[ObjectKey, ...]


RelatedQuery = (
    ObjectQuery
    | ProjectQuery
    | SeedOfShootQuery
    | ManagedSeedOfShootQuery
    | ShootsOnSeedQuery
    | ProfilesBelowQuery
    | KindQuery
    | QuotasQuery
)


class RelatedObjects(msgspec.Struct, frozen=True):
    """Results of queries; objects that do not exist are missing.

    `objects` by key (seeds of shoots too), `projects` by their namespace, `managed_seeds` by their shoot, `shoots_on`:
    the shoots on a seed, by its name; `profiles_below`: the NamespacedCloudProfiles of a CloudProfile, by its name;
    `all_of`: all objects of a kind, by the kind as in keys; `demands`: the demands that count for a Quota, by its key.
    """

    objects: Mapping[ObjectKey, Document] = {}
    projects: Mapping[str, Document] = {}
    managed_seeds: Mapping[ObjectKey, Document] = {}
    shoots_on: Mapping[str, Sequence[Document]] = {}
    profiles_below: Mapping[str, Sequence[Document]] = {}
    all_of: Mapping[str, Sequence[Document]] = {}
    demands: Mapping[ObjectKey, Mapping[str, int]] = {}
