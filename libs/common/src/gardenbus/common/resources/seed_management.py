"""Words of automated seed management: annotations, labels and conditions that several services read.

Source: Gardener's API group seedmanagement.gardener.cloud and its proposal 13; what is ours says so.
"""

PROTECT_FROM_DELETION = "seedmanagement.gardener.cloud/protect-from-deletion"
"""On a Shoot or ManagedSeed: exactly "true" keeps the replica from being removed by scaling in."""

PRIORITY = "seedmanagement.gardener.cloud/priority"
"""On a ManagedSeed or its Shoot: an integer, lower goes first when scaling in. Proposed by Gardener, not built."""

DEFAULT_PRIORITY = 3

MARKED_FOR_REMOVAL = "seedmanagement.gardener.cloud/marked-for-removal"
"""Ours, on a Seed: the set (`<ns>/<name>`) that is about to remove it. Every bind refuses such a seed."""

CORDONED_BY = "seedmanagement.gardener.cloud/cordoned-by"
"""Ours, on a Seed: who made it invisible, and alone shall undo it: a set (`<ns>/<name>`) that moves its shoots away, or
an operator. As long as it stands, no gardenlet that registers its Seed anew makes it visible again."""

CORDONED_BY_OPERATOR = "operator"

REVISION_LABEL = "seedmanagement.gardener.cloud/revision"
"""Ours, on a replica's Shoot and ManagedSeed: the revision of the set's templates that they were made from."""

REPLICA_NAME = "replica-name"
"""Stands in the templates where the name of the replica shall be."""

USE_AS_SEED = "shoot.gardener.cloud/use-as-seed"
"""The older way to ask for a ManagedSeed, on a Shoot in the garden namespace."""

SHOOT_RECONCILED = "ShootReconciled"
SEED_REGISTERED = "SeedRegistered"
"""Conditions of a ManagedSeed."""

DEFAULT_SHOOTS = "250"
"""How many shoots a gardenlet of a ManagedSeed takes when its configuration does not say."""
