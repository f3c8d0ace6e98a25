"""Preconditions of a write: how the store's functions are given them, and the errors of those that do not hold."""

from collections.abc import Sequence
from typing import Any

import msgspec

from gardenbus.common.adapters.store_responses import (
    exceeds_quota,
    has_been_regrouped,
    is_beyond,
    is_counted,
    is_guarded,
    is_held,
    is_outdated,
)
from gardenbus.common.api.budgets import over_stored_budget
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import GardenbusError
from gardenbus.common.ports.store import SeenGroups, WritePrecondition


def unmet(precondition: WritePrecondition, reply: Sequence[Any]) -> GardenbusError:
    """The error of a write whose precondition does not hold."""
    if reply[0] == b"outdated":
        return is_outdated(precondition.message, int(reply[2]))
    if reply[0] == b"regrouped":
        return has_been_regrouped(precondition.message)
    if reply[0] == b"held":
        return is_held(precondition.message, ObjectKey.from_stored(reply[2].decode()))
    if reply[0] == b"exceeded":
        return exceeds_quota(
            precondition.message, reply[2].decode(), msgspec.json.decode(reply[3]), int(reply[4]), int(reply[5])
        )
    if reply[0] == b"counted":
        return is_counted(precondition.message, int(reply[2]))
    if reply[0] == b"stored":
        return over_stored_budget(precondition.name, reply[2].decode(), int(reply[3]), int(reply[4]))
    if reply[0] == b"beyond":
        return is_beyond(precondition.message, [metric.decode() for metric in reply[2:]])
    return is_guarded(precondition.message, int(reply[2]), map(for_people, reply[3]))


def guards(preconditions: Sequence[WritePrecondition]) -> list[dict[str, Any]]:
    """Preconditions in the form of write_checks.lua."""
    return [_guard(precondition) for precondition in preconditions]


def _guard(precondition: WritePrecondition) -> dict[str, Any]:
    """A set that must be empty, a key and the version that it must have, or a claim that nothing living may hold."""
    match precondition.kind:
        case "version":
            return {"key": precondition.name, "version": precondition.version}
        case "claim":
            return {"claim": precondition.name}
        case "quota":
            return {"quota": True}
        case "demand":
            limits = precondition.limits
            return {
                "demand": precondition.name,
                "ns": limits.namespace,
                "limits": list(limits.most.items()),
                "amounts": limits.amounts,
            }
        case "stored":
            return {"stored": dict(precondition.limits.most)}
        case "count":
            return {"count": precondition.name, "most": precondition.most}
        case "groups":
            return {"groups": seen_groups(precondition.groups)}
        case "usage":
            return {"set": f"usage:{precondition.name}"}
        case "references":
            return {"set": f"refs:{precondition.name}"}


def seen_groups(groups: SeenGroups) -> dict[str, list[int]]:
    """Groups as groups.lua compares them."""
    return {group: list(seen) for group, seen in groups.items()}


def for_people(member: bytes) -> str:
    """A member of an index as people write it: `<kind> <ns>/<name>`, or `<ns>/<name>` for a shoot in a usage."""
    return member.decode().replace(":", " ", 1).replace(":", "/")
