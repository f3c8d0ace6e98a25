"""Whether a seed may take a shoot that is bound to it by hand."""

from gardenbus.common.resources.document import Document


def admit_binding(
    shoot: Document,
    seed: Document | None,
    *,
    project: Document | None,
    profile_spec: Document | None,
    usage: int | None = None,
) -> None:
    """Raise Forbidden with every reason; capacity is checked in the store too."""
    _ = shoot, seed, project, profile_spec, usage
