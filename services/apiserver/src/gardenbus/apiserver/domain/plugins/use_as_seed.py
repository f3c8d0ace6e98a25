"""UseAsSeed: the annotation `shoot.gardener.cloud/use-as-seed` requests a ManagedSeed, which must be a valid one.

Facts: the shoot's ManagedSeed, a Gardenlet of its name, and the shoots on the seed. Ours: Gardener had the annotation
once, and no plug-in for it.
"""

from gardenbus.apiserver.domain.plugins.plugin import AdmissionPlugin, AdmissionRule, of_stored
from gardenbus.apiserver.domain.use_as_seed_admission import (
    USE_AS_SEED_REJECTIONS,
    admit_use_as_seed,
    use_as_seed_queries,
    use_as_seed_warnings,
)

PLUGIN = AdmissionPlugin(
    name="UseAsSeed",
    acts="rejects an annotation `shoot.gardener.cloud/use-as-seed` whose ManagedSeed could not be created or deleted",
    rejections=(*USE_AS_SEED_REJECTIONS,),
    rules=(
        AdmissionRule(
            ("Shoot",),
            queries=use_as_seed_queries,
            warn=of_stored(use_as_seed_warnings),
            admit=of_stored(admit_use_as_seed),
        ),
    ),
)
