"""Networks of a shoot on a seed: its own ranges or the seed's defaults, and their conflicts."""

from collections.abc import Iterator
from functools import lru_cache

import msgspec

from gardenbus.common.api.garden.seeds import SeedNetworks, ShootNetworks
from gardenbus.common.api.garden.shoots import Shoot
from gardenbus.common.api.networks import LONGEST_RANGE, RESERVED_RANGES, ip_family_of, is_cidr, overlap

MOST_TEXTS = 20
"""Texts of a shoot's networks that are remembered; it has a handful."""


class Ranges(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The networks of a shoot. `stated` is false when spec.networking is missing: then nothing is checked.

    `in_use` are nodes, pods and services of status.networking.
    """

    stated: bool = True
    is_workerless: bool = False
    ip_families: tuple[str, ...] = ("IPv4",)
    nodes: str | None = None
    pods: str | None = None
    services: str | None = None
    in_use: tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]] | None = None


def ranges_of(shoot: Shoot) -> Ranges:
    """Read a shoot's networks."""
    networking = shoot.spec.networking
    if networking is None:
        return Ranges(stated=False, is_workerless=shoot.is_workerless, ip_families=shoot.ip_families)
    in_use = shoot.status.networking
    return Ranges(
        is_workerless=shoot.is_workerless,
        ip_families=shoot.ip_families,
        nodes=networking.nodes,
        pods=networking.pods,
        services=networking.services,
        in_use=(in_use.nodes, in_use.pods, in_use.services) if in_use is not None else None,
    )


def effective_ranges(ranges: Ranges, defaults: ShootNetworks | None) -> tuple[str | None, str | None]:
    """Pods and services as the shoot would have them on a seed: its own, else the seed's defaults for shoots.

    A default counts only in the shoot's address families, that of the pods only for shoots with workers.
    """
    pods, services = ranges.pods, ranges.services
    if defaults is not None:
        if pods is None and not ranges.is_workerless:
            pods = _in_ip_families(defaults.pods, ranges.ip_families)
        if services is None:
            services = _in_ip_families(defaults.services, ranges.ip_families)
    return pods, services


def network_problems(ranges: Ranges, seed: SeedNetworks) -> tuple[str, ...]:
    """Reasons that the shoot's networks conflict with the seed's; none without conflict.

    They must be disjoint from the seed's and from the reserved ranges, IPv4 as IPv6 (Gardener lets IPv4 overlap the
    seed's). A range that nobody states is not checked. A malformed one conflicts with everything.
    """
    if not ranges.stated:
        return ()
    return (_remembered_problems if _is_short(ranges) else _problems)(ranges, seed)


def _is_short(ranges: Ranges) -> bool:
    """True if the texts are no longer than ranges are: anything else is not worth remembering."""
    in_use = () if ranges.in_use is None else (text for texts in ranges.in_use for text in texts)
    texts = (*ranges.ip_families, ranges.nodes, ranges.pods, ranges.services, *in_use)
    return len(texts) <= MOST_TEXTS and all(text is None or len(text) <= LONGEST_RANGE for text in texts)


def _problems(ranges: Ranges, seed: SeedNetworks) -> tuple[str, ...]:
    problems = [
        problem for kind, cidr in _ranges_on(ranges, seed.shoot_defaults) for problem in _problems_of(kind, cidr, seed)
    ]
    if ranges.in_use is not None:
        problems += _missing_in_use(ranges)
    return tuple(problems)


_remembered_problems = lru_cache(maxsize=32_768)(_problems)


def _in_ip_families(cidr: str | None, families: tuple[str, ...]) -> str | None:
    # A malformed default has no family. It is kept, so that the seed is infeasible instead of the range being dropped.
    return cidr if cidr is not None and ip_family_of(cidr) in (*families, None) else None


def _ranges_on(ranges: Ranges, defaults: ShootNetworks | None) -> Iterator[tuple[str, str]]:
    pods, services = effective_ranges(ranges, defaults)
    for kind, cidr in (("nodes", ranges.nodes), ("pods", pods), ("services", services)):
        if cidr is not None:
            yield kind, cidr
    for kind, cidrs in zip(("nodes", "pods", "services"), ranges.in_use or (), strict=False):
        for cidr in cidrs:
            yield kind, cidr


def _problems_of(kind: str, cidr: str, seed: SeedNetworks) -> Iterator[str]:
    if not is_cidr(cidr):
        yield f"the shoot's {kind} {cidr!r} are no network range"
        return
    others = (("nodes", seed.nodes), ("pods", seed.pods), ("services", seed.services))
    if overlapped := [f"{name} {other}" for name, other in others if other is not None and overlap(cidr, other)]:
        yield f"the shoot's {kind} {cidr} overlap with the seed's {', '.join(overlapped)}"
    for reserved in RESERVED_RANGES:
        if overlap(cidr, reserved):
            yield f"the shoot's {kind} {cidr} overlap with the reserved range {reserved}"


def _missing_in_use(ranges: Ranges) -> list[str]:
    _nodes, pods, services = ranges.in_use or ((), (), ())
    missing = [] if services else ["the shoot's status names no services"]
    if not pods and not ranges.is_workerless:
        missing.append("the shoot's status names no pods")
    return missing
