"""Annotations, labels and conditions of seed management that several services read.

Source: Gardener's API group seedmanagement.gardener.cloud and its proposal 13; extensions of ours are marked `Ours`.
"""

PROTECT_FROM_DELETION = "seedmanagement.gardener.cloud/protect-from-deletion"
"""On a Shoot or ManagedSeed: exactly "true" keeps the replica from being removed by scaling in."""

PRIORITY = "seedmanagement.gardener.cloud/priority"
"""On a ManagedSeed or its Shoot: an integer, lower goes first when scaling in. Proposed by Gardener, not built."""

DEFAULT_PRIORITY = 3

REMOVAL_ANNOTATION = "seedmanagement.gardener.cloud/marked-for-removal"
"""Ours, on a Seed: the set (`<ns>/<name>`) that is about to remove it. No shoot is bound to such a seed."""

CORDONED_BY = "seedmanagement.gardener.cloud/cordoned-by"
"""Ours, on a Seed: owner of the cordon, who alone removes it: a set (`<ns>/<name>`) that relocates its shoots, or an
operator. No gardenlet that registers its Seed again makes a cordoned one visible."""

CORDONED_BY_OPERATOR = "operator"

REVISION_LABEL = "seedmanagement.gardener.cloud/revision"
"""Ours, on a replica's Shoot and ManagedSeed: the revision of the set's templates."""

REPLICA_NAME = "replica-name"
"""Placeholder of the replica's name in templates."""

USE_AS_SEED = "shoot.gardener.cloud/use-as-seed"
"""Older form of a ManagedSeed, on a Shoot in the garden namespace."""

SHOOT_RECONCILED = "ShootReconciled"
SEED_REGISTERED = "SeedRegistered"
"""Conditions of a ManagedSeed."""

DEFAULT_SHOOTS = "250"
"""Default capacity in shoots of a ManagedSeed's gardenlet."""
