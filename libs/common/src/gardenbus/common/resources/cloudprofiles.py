"""CloudProfiles, also namespaced ones, and the ConfigMaps with distances between regions: what scheduling reads."""

import msgspec

from gardenbus.common.resources.document import Document
from gardenbus.common.resources.shoots import SeedSelector
from gardenbus.common.resources.views import Metadata, View, read_view

REGION_CONFIG_LABEL = "scheduling.gardener.cloud/purpose"
REGION_CONFIG_PURPOSE = "region-config"
REGION_CONFIG_PROFILES = "scheduling.gardener.cloud/cloudprofiles"


class CloudProfileSpec(View, frozen=True):
    """What is read of a profile."""

    type: str = ""
    """The infrastructure, as `aws`."""

    seed_selector: SeedSelector | None = None


class CloudProfile(View, frozen=True):
    """A CloudProfile."""

    metadata: Metadata = Metadata()
    spec: CloudProfileSpec = CloudProfileSpec()

    @classmethod
    def from_document(cls, document: Document | bytes) -> "CloudProfile":
        """Read the view; raises InvalidResource when a field has the wrong type."""
        return read_view(document, cls)


class NamespacedCloudProfileStatus(View, frozen=True):
    """The profile as merged with its parent."""

    cloud_profile_spec: CloudProfileSpec = CloudProfileSpec()


class NamespacedCloudProfile(View, frozen=True):
    """A NamespacedCloudProfile; what counts is the merged profile in its status."""

    metadata: Metadata = Metadata()
    status: NamespacedCloudProfileStatus = NamespacedCloudProfileStatus()

    @classmethod
    def from_document(cls, document: Document | bytes) -> "NamespacedCloudProfile":
        """Read the view; raises InvalidResource when a field has the wrong type."""
        return read_view(document, cls)


class RegionConfigMap(View, frozen=True):
    """A ConfigMap that may hold distances: region → YAML map of region → distance."""

    metadata: Metadata = Metadata()
    data: dict[str, str] = msgspec.field(default_factory=dict[str, str])
    """Region → YAML map of region → distance, for the strategy `MinimalDistance`."""

    @classmethod
    def from_document(cls, document: Document | bytes) -> "RegionConfigMap":
        """Read the view; raises InvalidResource when a field has the wrong type."""
        return read_view(document, cls)

    @property
    def is_region_config(self) -> bool:
        """Whether it says so, by its label, in the garden namespace."""
        return (
            self.metadata.namespace == "garden"
            and self.metadata.labels.get(REGION_CONFIG_LABEL) == REGION_CONFIG_PURPOSE
        )

    @property
    def profiles(self) -> frozenset[str]:
        """The names of the profiles that it is for."""
        names = self.metadata.annotations.get(REGION_CONFIG_PROFILES, "").split(",")
        return frozenset(name.strip() for name in names) - {""}
