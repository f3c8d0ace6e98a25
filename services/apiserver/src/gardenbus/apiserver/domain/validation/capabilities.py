"""Rules of machine capabilities: what a profile defines, and what its machine types and images have of it.

Source: Gardener's `pkg/api/core/validation/cloudprofile.go` and `utils.go`.
"""

from collections.abc import Mapping, Sequence

from gardenbus.apiserver.domain.validation.field_cursor import FieldCursor, unique
from gardenbus.apiserver.domain.validation.metadata import qualified_name_problem
from gardenbus.common.api.document_parts import mappings

ARCHITECTURE = "architecture"
_RESERVED_PREFIX = "gardener-"
ARCHITECTURES = ("amd64", "arm64")

Capabilities = Mapping[str, Sequence[str]]
"""Values of each capability."""


def check_definitions(spec: FieldCursor) -> None:
    """Note definitions without name or values, repeated ones, and a profile that defines no architecture."""
    definitions = spec.entries("machineCapabilities")
    for definition in definitions:
        definition.text("name", required=True, rule=unprefixed_problem)
        if str(definition.content.get("name")).startswith(_RESERVED_PREFIX):
            definition.add_error("name", f"begins with {_RESERVED_PREFIX}, which is kept for Gardener's own")
        values = definition.unique_texts("values", rule=unprefixed_problem)
        if not values and not definition.content.get("values"):
            definition.add_error("values", "is needed: a capability has values")
        for path, value in values if definition.content.get("name") == ARCHITECTURE else ():
            if value not in ARCHITECTURES:
                definition.errors.add_error(path, f"must be {' or '.join(ARCHITECTURES)}, not {value[:80]!r}")
    unique(definitions, "name")
    if definitions and ARCHITECTURE not in [definition.content.get("name") for definition in definitions]:
        spec.add_error("machineCapabilities", f"must define the capability {ARCHITECTURE}")


def check_machine_types(spec: FieldCursor) -> None:
    """Note capabilities of machine types that are not defined, or do not go with the architecture."""
    defined = _defined(spec)
    for machine in spec.entries("machineTypes"):
        capabilities = machine.section("capabilities")
        if not defined:
            if capabilities.content:
                machine.add_error("capabilities", "are to be defined in spec.machineCapabilities first")
            continue
        _check_values(capabilities, defined)
        own = [value for _, value in capabilities.texts(ARCHITECTURE)]
        stated = machine.content.get(ARCHITECTURE)
        if len(own) > 1:
            capabilities.add_error(ARCHITECTURE, f"a machine has one, not {len(own)}")
        elif own and stated and stated != own[0]:
            machine.add_error(ARCHITECTURE, f"is {stated!s:.80}, but {own[0][:80]} among the capabilities")


def check_images(spec: FieldCursor) -> None:
    """Note flavors of images that are not defined, or leave the architecture open."""
    defined = _defined(spec)
    for image in spec.entries("machineImages"):
        for version in image.entries("versions"):
            flavors = version.entries("capabilityFlavors")
            if defined:
                _check_flavors(version, flavors, defined)
            elif flavors:
                version.add_error("capabilityFlavors", "are to be defined in spec.machineCapabilities first")


def _check_flavors(version: FieldCursor, flavors: Sequence[FieldCursor], defined: Capabilities) -> None:
    several = len(defined.get(ARCHITECTURE, ())) > 1
    found = set[str]()
    for flavor in flavors:
        _check_values(flavor, defined)
        own = [value for _, value in flavor.texts(ARCHITECTURE)]
        found.update(own)
        if len(own) > 1 or (several and not own):
            flavor.add_error(ARCHITECTURE, f"a flavor has one, not {len(own)}: there are several to choose from")
    if several and not flavors:
        version.add_error("capabilityFlavors", "is needed: spec.machineCapabilities has several architectures")
    offered = found or set(defined.get(ARCHITECTURE, ()))
    for path, architecture in version.texts("architectures"):
        if architecture not in offered:
            version.errors.add_error(path, f"{architecture[:80]!r} is that of no flavor")


def _check_values(holder: FieldCursor, defined: Capabilities) -> None:
    for name in holder.content:
        if name not in defined:
            holder.add_error(name, f"is not defined: spec.machineCapabilities has {', '.join(defined)}")
            continue
        for path, value in holder.texts(name):
            if value not in defined[name]:
                holder.errors.add_error(path, f"must be one of {', '.join(defined[name])}, not {value[:80]!r}")


def _defined(spec: FieldCursor) -> Capabilities:
    return {
        str(one.get("name")): [str(value) for value in one["values"]] if isinstance(one.get("values"), list) else []
        for one in mappings(spec.content.get("machineCapabilities"))
    }


def unprefixed_problem(name: str) -> str:
    """Problem of a name as of a label, without a prefix; "" when it is valid."""
    return "must have no /" if "/" in name else qualified_name_problem(name)
