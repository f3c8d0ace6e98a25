"""The rules of Projects. Source: Gardener's `pkg/api/core/validation/project.go`, for the fields that are read here."""

from gardenbus.apiserver.decide.fields import Place
from gardenbus.apiserver.decide.metadata import label_problem
from gardenbus.apiserver.decide.validators.scheduling import check_tolerations
from gardenbus.common.resources.document import Document, section


def check(manifest: Place, old: Document | None) -> None:
    """Note every problem of a Project; its namespace stays."""
    spec = manifest.section("spec")
    if spec is None:
        if section(old or {}, "spec").get("namespace"):
            manifest.note("spec.namespace", "cannot be taken away: a project keeps its namespace")
        return
    if (namespace := spec.text("namespace")) and (problem := label_problem(namespace)):
        spec.note("namespace", problem)
    spec.entries("members")
    spec.section("owner")
    if tolerations := spec.section("tolerations"):
        check_tolerations(tolerations, "defaults")
        check_tolerations(tolerations, "whitelist")
    if old is not None:
        spec.same_as(section(old, "spec"), "namespace", "a project keeps its namespace")
