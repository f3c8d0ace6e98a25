"""A scheduler written straight from the rules, on plain manifests: slow, simple, and sharing no code with ours.

It says which seed a shoot gets, or None. It is what the real one is compared with.
"""

# pyright: basic, reportOperatorIssue=false, reportArgumentType=false
# Manifests are plain dicts here; spelling out every Any would hide the rules.

from collections.abc import Iterator
from fractions import Fraction
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Any, Protocol

import yaml

Manifest = dict[str, Any]

RESERVED = ["fd8f:6d53:b97a:1::/96", *(f"{first}.0.0.0/8" for first in range(240, 245))]
FACTORS = {"m": Fraction(1, 1000), "k": Fraction(1000), "Ki": Fraction(1024)}


class Profile(Protocol):
    """Scores that choose instead of usage, and labels that a profile requires."""

    def allows(self, shoot: Manifest, seed: Manifest) -> bool: ...

    def total(self, shoot: Manifest, seed: Manifest, used: int, documents: list[Manifest]) -> int: ...


class NoSeed(Exception):
    """Scheduling fails."""


def schedule_all(documents: list[Manifest], strategy: str) -> dict[str, str | None]:
    """Place every pending shoot in order, each counting for the next."""
    placements: dict[str, str | None] = {}
    shoots = [document for document in documents if document["kind"] == "Shoot"]
    pending = [shoot for shoot in shoots if not shoot["spec"].get("seedName")]
    for shoot in pending:
        try:
            seed = schedule(shoot, documents, strategy)
            shoot["spec"]["seedName"] = seed
        except NoSeed:
            seed = None
        placements[f"{shoot['metadata']['namespace']}/{shoot['metadata']['name']}"] = seed
    return placements


def schedule(shoot: Manifest, documents: list[Manifest], strategy: str, scoring: Profile | None = None) -> str:
    """Choose a seed; raises NoSeed."""
    spec = shoot["spec"]
    if (
        shoot["metadata"].get("deletionTimestamp")
        or spec.get("schedulerName", "default-scheduler") != "default-scheduler"
    ):
        raise NoSeed
    if any(worker.get("controlPlane") is not None for worker in spec["provider"].get("workers") or []):
        raise NoSeed
    seeds = sorted(of(documents, "Seed"), key=lambda seed: seed["metadata"]["name"])
    profile = find_profile(shoot, documents)
    project = find_project(shoot, documents)
    profile_selector = profile.get("seedSelector")
    seeds = some(seed for seed in seeds if usable(seed))
    for selector in (profile_selector, spec.get("seedSelector")):
        if selector is not None:
            seeds = some(seed for seed in seeds if selected(selector, seed["metadata"].get("labels") or {}))
    types = (profile_selector or {}).get("providerTypes") or [spec["provider"]["type"]]
    seeds = some(seed for seed in seeds if "*" in types or seed["spec"]["provider"]["type"] in types)
    zonal = ((spec.get("controlPlane") or {}).get("highAvailability") or {}).get("failureTolerance", {}).get(
        "type"
    ) == "zone"
    if zonal:
        seeds = some(seed for seed in seeds if len(seed["spec"]["provider"].get("zones") or []) >= 3)
    else:
        seeds = zone_selection(spec, seeds)
    wanted = [restriction["name"] for restriction in spec.get("accessRestrictions") or []]
    seeds = some(seed for seed in seeds if supports(seed, wanted))
    seeds = domain(shoot, project, seeds)
    stop = "shoot.gardener.cloud/emergency-stop-reconciliations"
    seeds = some(seed for seed in seeds if (seed["metadata"].get("annotations") or {}).get(stop) != "true")
    counts = usage_of(documents)
    usage = {seed["metadata"]["name"]: counts.get(seed["metadata"]["name"], 0) for seed in seeds}
    seeds = some(
        seed
        for seed in seeds
        if networks_fit(shoot, seed)
        and tolerated(shoot, seed, documents)
        and (scoring is None or scoring.allows(shoot, seed))
        and has_room(seed, usage[seed["metadata"]["name"]])
    )
    seeds = some(candidates(shoot, seeds, documents, strategy))
    names = {seed["metadata"]["name"]: seed for seed in seeds}
    if scoring is None:
        return min(names, key=lambda name: (usage.get(name, 0), name))
    totals = {name: scoring.total(shoot, seed, usage.get(name, 0), documents) for name, seed in names.items()}
    return min(names, key=lambda name: (-totals[name], name))


def some(seeds: Iterator[Manifest] | list[Manifest]) -> list[Manifest]:
    """A list of at least one."""
    found = list(seeds)
    if not found:
        raise NoSeed
    return found


def of(documents: list[Manifest], kind: str) -> list[Manifest]:
    return [document for document in documents if document["kind"] == kind]


def find_profile(shoot: Manifest, documents: list[Manifest]) -> Manifest:
    reference = shoot["spec"].get("cloudProfile") or {"name": shoot["spec"].get("cloudProfileName")}
    for document in documents:
        if document["metadata"]["name"] != reference["name"]:
            continue
        if document["kind"] == "CloudProfile" and (reference.get("kind") or "CloudProfile") == "CloudProfile":
            return document["spec"]
        if (
            document["kind"] == "NamespacedCloudProfile" == reference.get("kind")
            and document["metadata"]["namespace"] == shoot["metadata"]["namespace"]
        ):
            return document["status"]["cloudProfileSpec"]
    raise NoSeed


def find_project(shoot: Manifest, documents: list[Manifest]) -> str:
    namespace = shoot["metadata"]["namespace"]
    names = [
        project["metadata"]["name"] for project in of(documents, "Project") if project["spec"]["namespace"] == namespace
    ]
    if not names:
        raise NoSeed
    return min(names)


def usable(seed: Manifest) -> bool:
    status = seed.get("status") or {}
    conditions = {condition["type"]: condition["status"] for condition in status.get("conditions") or []}
    return (
        not seed["metadata"].get("deletionTimestamp")
        and seed["spec"]["settings"]["scheduling"]["visible"]
        and status.get("lastOperation") is not None
        and conditions.get("GardenletReady") == "True"
        and ("backup" not in seed["spec"] or conditions.get("BackupBucketsReady") == "True")
    )


def selected(selector: Manifest, labels: dict[str, str]) -> bool:
    for key, value in (selector.get("matchLabels") or {}).items():
        if labels.get(key) != value:
            return False
    for expression in selector.get("matchExpressions") or []:
        key, operator, values = expression["key"], expression["operator"], expression.get("values") or []
        if (operator in ("In", "NotIn")) != bool(values):
            raise NoSeed
        meets = {
            "In": key in labels and labels[key] in values,
            "NotIn": key not in labels or labels[key] not in values,
            "Exists": key in labels,
            "DoesNotExist": key not in labels,
        }[operator]
        if not meets:
            return False
    return True


def zone_selection(spec: Manifest, seeds: list[Manifest]) -> list[Manifest]:
    def zones(seed: Manifest) -> set[str]:
        return set(seed["spec"]["provider"].get("zones") or [])

    def mode(seed: Manifest) -> str | None:
        return (seed["spec"]["settings"].get("zoneSelection") or {}).get("mode")

    pinned = set((spec.get("controlPlane") or {}).get("zones") or [])
    if pinned:
        return some(seed for seed in seeds if zones(seed) >= pinned)
    hints = {zone for worker in spec["provider"].get("workers") or [] for zone in worker.get("zones") or []}
    first = some(seed for seed in seeds if mode(seed) != "Enforce" or not hints or zones(seed) & hints)
    if not hints:
        return first
    second = [seed for seed in first if mode(seed) != "Prefer" or zones(seed) & hints]
    return second or first


def supports(seed: Manifest, wanted: list[str]) -> bool:
    supported = [restriction["name"] for restriction in seed["spec"].get("accessRestrictions") or []]
    return set(wanted) <= set(supported) and len(wanted) <= len(supported)


def domain(shoot: Manifest, project: str, seeds: list[Manifest]) -> list[Manifest]:
    own = (shoot["spec"].get("dns") or {}).get("domain")
    if own is None:
        return seeds
    managed = False
    matching: list[Manifest] = []
    for seed in seeds:
        for default in (seed["spec"].get("dns") or {}).get("defaults") or []:
            if own.endswith("." + default["domain"]):
                managed = True
                if own == f"{shoot['metadata']['name']}.{project}.{default['domain']}":
                    matching.append(seed)
                    break
    return some(matching) if managed else seeds


def networks_fit(shoot: Manifest, seed: Manifest) -> bool:
    networking = shoot["spec"].get("networking")
    if networking is None:
        return True
    own = seed["spec"]["networks"]
    defaults = own.get("shootDefaults") or {}
    families = networking.get("ipFamilies") or ["IPv4"]
    ranges = [networking.get("nodes")]
    for name, wanted in (("pods", bool(shoot["spec"]["provider"].get("workers"))), ("services", True)):
        stated = networking.get(name)
        if stated is None and wanted and defaults.get(name) and f"IPv{version(defaults[name])}" in families:
            stated = defaults[name]
        ranges.append(stated)
    for cidr in ranges:
        if cidr is None:
            continue
        network = read(cidr)
        if network is None:
            return False
        for other in [own.get("nodes"), own.get("pods"), own.get("services"), *RESERVED]:
            if other is not None and version(other) == network.version:
                against = ip_network(other, strict=False)
                if (
                    network.network_address <= against.broadcast_address
                    and against.network_address <= network.broadcast_address
                ):  # type: ignore[operator]  # pyright: ignore[reportOperatorIssue]
                    return False
    return True


def read(cidr: str) -> IPv4Network | IPv6Network | None:
    try:
        return ip_network(cidr, strict=False) if "/" in cidr else None
    except ValueError:
        return None


def version(cidr: str) -> int:
    return ip_network(cidr, strict=False).version


def counts(toleration: Manifest, shoot: Manifest, documents: list[Manifest]) -> bool:
    """What nobody could check when the shoot was made must be allowed by its Project."""
    note = (shoot["metadata"].get("annotations") or {}).get("gardener.cloud/unchecked-tolerations")
    if note is None or toleration not in yaml.safe_load(note):
        return True
    name = find_project(shoot, documents)
    (project,) = (project for project in of(documents, "Project") if project["metadata"]["name"] == name)
    lists = project["spec"].get("tolerations") or {}
    for allowed in [*lists.get("whitelist", []), *lists.get("defaults", [])]:
        if allowed["key"] == toleration["key"] and allowed.get("value") in (None, toleration.get("value")):
            return True
    return False


def tolerated(shoot: Manifest, seed: Manifest, documents: list[Manifest]) -> bool:
    taints = seed["spec"].get("taints") or []
    tolerations = [one for one in shoot["spec"].get("tolerations") or [] if counts(one, shoot, documents)]
    if len(taints) > len(tolerations):
        return False
    values = {toleration["key"]: toleration.get("value") or "" for toleration in tolerations}
    return all(
        taint["key"] in values and (taint.get("value") is None or values[taint["key"]] == taint["value"])
        for taint in taints
    )


def has_room(seed: Manifest, used: int) -> bool:
    allocatable = (seed.get("status") or {}).get("allocatable") or {}
    if "shoots" not in allocatable:
        return True
    text = str(allocatable["shoots"])
    suffix = text.lstrip("0123456789")
    return used < Fraction(text.removesuffix(suffix)) * FACTORS.get(suffix, 1)


def usage_of(documents: list[Manifest]) -> dict[str, int]:
    usage: dict[str, int] = {}
    for shoot in of(documents, "Shoot"):
        wanted = shoot["spec"].get("seedName")
        actual = (shoot.get("status") or {}).get("seedName")
        for seed in {wanted, actual} - {None}:
            usage[seed] = usage.get(seed, 0) + 1
    return usage


def candidates(shoot: Manifest, seeds: list[Manifest], documents: list[Manifest], strategy: str) -> list[Manifest]:
    spec = shoot["spec"]
    same = [seed for seed in seeds if seed["spec"]["provider"]["type"] == spec["provider"]["type"]]
    if spec.get("purpose") == "testing":
        return same
    if strategy == "SameRegion":
        return [seed for seed in same if seed["spec"]["provider"]["region"] == spec["region"]]
    if strategy == "Weighted":
        distances_for(shoot, documents)  # what cannot be read ends it
        return seeds  # by name, all are near enough here
    return configured(shoot, seeds, documents) or by_name(shoot, seeds)


def distances_for(shoot: Manifest, documents: list[Manifest]) -> dict[str, int]:
    """The distances of the region ConfigMap that counts, none without it; raises NoSeed if malformed."""
    region = shoot["spec"]["region"]
    reference = shoot["spec"].get("cloudProfile") or {"name": shoot["spec"].get("cloudProfileName")}
    maps = [
        configmap
        for configmap in sorted(of(documents, "ConfigMap"), key=lambda configmap: configmap["metadata"]["name"])
        if configmap["metadata"]["namespace"] == "garden"
        and (configmap["metadata"].get("labels") or {}).get("scheduling.gardener.cloud/purpose") == "region-config"
        and reference["name"]
        in [
            name.strip()
            for name in (configmap["metadata"].get("annotations") or {})
            .get("scheduling.gardener.cloud/cloudprofiles", "")
            .split(",")
        ]
    ]
    text = maps[0]["data"].get(region) if maps else None
    if not text:
        return {}
    try:
        distances = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise NoSeed from error
    if not isinstance(distances, dict) or not all(type(value) is int for value in distances.values()):  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType, reportUnknownArgumentType]
        raise NoSeed
    return {region: 0} | distances


def configured(shoot: Manifest, seeds: list[Manifest], documents: list[Manifest]) -> list[Manifest]:
    existing = distances_for(shoot, documents)
    listed = [seed for seed in seeds if seed["spec"]["provider"]["region"] in existing]
    nearest = min((existing[seed["spec"]["provider"]["region"]] for seed in listed), default=0)
    return [seed for seed in listed if existing[seed["spec"]["provider"]["region"]] == nearest]


def by_name(shoot: Manifest, seeds: list[Manifest]) -> list[Manifest]:
    nearest, chosen = 1000, []
    for seed in seeds:
        provider = seed["spec"]["provider"]
        distance = region_distance(provider["region"], shoot["spec"]["region"])
        distance += 2 if provider["type"] != shoot["spec"]["provider"]["type"] else 0
        if distance < nearest:
            nearest, chosen = distance, []
        if distance == nearest:
            chosen.append(seed)
    return chosen


def region_distance(one: str, other: str) -> int:
    (base, orientation), (other_base, other_orientation) = split(one), split(other)
    distance = 2 * levenshtein(base, other_base)
    if bool(orientation) != bool(other_orientation):
        return distance + 1
    return distance + (2 if orientation != other_orientation else 0)


def split(region: str) -> tuple[str, str]:
    for orientation in ("north", "south", "east", "west", "central"):
        before, found, after = region.partition(orientation)
        if found:
            return f"{before}:{after}", orientation
    return region, ""


def levenshtein(one: str, other: str) -> int:
    row = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        above, row[0] = row[0], i
        for j, other_letter in enumerate(other, 1):
            above, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, above + (letter != other_letter))
    return row[-1]
