"""CloudProfiles, namespaced ones, and ConfigMaps with distances between regions, as scheduling reads them."""

import msgspec

from gardenbus.common.api.garden.shoots import SeedSelector
from gardenbus.common.api.views import Metadata, TypedView

REGION_CONFIG_LABEL = "scheduling.gardener.cloud/purpose"
REGION_CONFIG_PURPOSE = "region-config"
REGION_CONFIG_PROFILES = "scheduling.gardener.cloud/cloudprofiles"


class CloudProfileSpec(TypedView, frozen=True):
    """Fields of a profile's spec."""

    type: str = ""
    """The infrastructure, as `aws`."""

    seed_selector: SeedSelector | None = None


class CloudProfile(TypedView, frozen=True):
    """A CloudProfile."""

    metadata: Metadata = Metadata()
    spec: CloudProfileSpec = CloudProfileSpec()


class NamespacedCloudProfileStatus(TypedView, frozen=True):
    """The profile as merged with its parent."""

    cloud_profile_spec: CloudProfileSpec = CloudProfileSpec()


class NamespacedCloudProfile(TypedView, frozen=True):
    """A NamespacedCloudProfile; what counts is the merged profile in its status."""

    metadata: Metadata = Metadata()
    status: NamespacedCloudProfileStatus = NamespacedCloudProfileStatus()


class RegionConfigMap(TypedView, frozen=True):
    """A ConfigMap that may hold distances: region → YAML map of region → distance."""

    metadata: Metadata = Metadata()
    data: dict[str, str] = msgspec.field(default_factory=dict[str, str])
    """Region → YAML map of region → distance, for the strategy `MinimalDistance`."""

    @property
    def is_region_config(self) -> bool:
        """True for its label in the garden namespace."""
        return (
            self.metadata.namespace == "garden"
            and self.metadata.labels.get(REGION_CONFIG_LABEL) == REGION_CONFIG_PURPOSE
        )

    @property
    def profiles(self) -> frozenset[str]:
        """Names of the profiles with these distances."""
        names = self.metadata.annotations.get(REGION_CONFIG_PROFILES, "").split(",")
        return frozenset(name.strip() for name in names) - {""}
