"""Rules of Gardenlets: how a gardenlet is deployed, from which chart, and with which configuration.

Source: Gardener's `pkg/api/seedmanagement/validation/gardenlet.go`.
"""

from gardenbus.apiserver.domain.validation import seed
from gardenbus.apiserver.domain.validation.controller_deployment import check_oci_repository
from gardenbus.apiserver.domain.validation.field_cursor import FieldCursor
from gardenbus.apiserver.domain.validation.gardenlet_configuration import check_configuration
from gardenbus.apiserver.domain.validation.managed_seed import (
    OPERATIONS,
    check_connection,
    check_deployment,
    check_garden_namespace,
)
from gardenbus.apiserver.domain.validation.metadata import check_label_name
from gardenbus.apiserver.domain.validation.status import check_status
from gardenbus.common.api.document import Document, section


def check(manifest: FieldCursor, old: Document | None) -> None:
    """Note every problem of a Gardenlet, and changes of its Seed that shoots on it would not bear."""
    check_label_name(manifest)
    check_garden_namespace(manifest, "a Gardenlet")
    check_status(manifest)
    seed.check_operation(manifest, old, (*OPERATIONS, "force-redeploy"), awaited=())
    spec = manifest.section("spec", required=True)
    check_deployment(spec.section("deployment"))
    repository = spec.nested("deployment", "helm", "ociRepository")
    check_oci_repository(repository)
    if spec and not repository:
        spec.add_error("deployment.helm.ociRepository", "is needed: where the chart of gardenlets is")
    if config := spec.section("config"):
        check_configuration(config, is_on_shoot=False)
        check_connection(config, "BootstrapToken", merges=False)
        before = section(old or {}, "spec", "config", "seedConfig", "spec")
        seed.check_spec_update(config.nested("seedConfig", "spec"), before)
