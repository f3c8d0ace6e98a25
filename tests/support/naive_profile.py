"""A profile for the naive scheduler: the scores of plain manifests by their rules."""

# pyright: basic, reportOperatorIssue=false, reportArgumentType=false
# Manifests are plain dicts here; spelling out every Any would hide the rules.

from fractions import Fraction
from math import ceil
from typing import Any

from tests.support import naive_scheduler, naive_scores
from tests.support.naive_scheduler import FACTORS, Manifest, NoSeed
from tests.support.naive_scores import NaiveSeed


class NaiveProfile:
    """Scores as a configuration has them: (name, weight, args)."""

    def __init__(self, scores: list[tuple[str, int, dict[str, Any]]]) -> None:
        self.scores = scores

    def allows(self, shoot: Manifest, seed: Manifest) -> bool:
        labels = seed["metadata"].get("labels") or {}
        return all(
            any(naive_scores.matches(term, labels) for term in each["required"])
            for each in self._added(shoot)
            if each.get("required")
        )

    def total(self, shoot: Manifest, seed: Manifest, used: int, documents: list[Manifest]) -> int:
        plain = plain_seed(shoot, seed, used, documents)
        return sum(weight * self._score(name, args, plain, shoot, documents) for name, weight, args in self.scores)

    def _added(self, shoot: Manifest) -> list[dict[str, Any]]:
        purpose = shoot["spec"].get("purpose", "")
        added = [entry for _, _, args in self.scores for entry in args.get("addedAffinity", [])]
        return [each for each in added if purpose in each.get("purposes", [purpose])]

    def _score(
        self, name: str, args: dict[str, Any], seed: NaiveSeed, shoot: Manifest, documents: list[Manifest]
    ) -> int:
        match name.partition("/")[0]:
            case "SeedResourcesFit":
                return naive_scores.fit(args, seed, {"shoots": 1})
            case "SeedResourcesBalancedAllocation":
                return naive_scores.balance(args, seed, {"shoots": 1})
            case "MinimalDistance":
                return naive_scores.distance(args.get("farthest") or farthest(shoot, documents), seed)
            case "SeedZoneFit":
                availability = (shoot["spec"].get("controlPlane") or {}).get("highAvailability") or {}
                return naive_scores.zone_fit(
                    seed, is_zonal=availability.get("failureTolerance", {}).get("type") == "zone"
                )
            case "SeedAffinity":
                terms = [term for each in self._added(shoot) for term in each.get("preferred", [])]
                return naive_scores.affinity(terms, seed)
            case _:
                return naive_scores.annotation(args, seed)


def plain_seed(shoot: Manifest, seed: Manifest, used: int, documents: list[Manifest]) -> NaiveSeed:
    metadata = seed["metadata"]
    allocatable = {}
    stated = (seed.get("status") or {}).get("allocatable") or {}
    if "shoots" in stated:
        text = str(stated["shoots"])
        suffix = text.lstrip("0123456789")
        allocatable["shoots"] = ceil(Fraction(text.removesuffix(suffix)) * FACTORS.get(suffix, 1))
    return NaiveSeed(
        metadata["name"],
        {
            "allocatable": allocatable,
            "used": {"shoots": used},
            "labels": metadata.get("labels") or {},
            "annotations": metadata.get("annotations") or {},
            "zones": len(seed["spec"]["provider"].get("zones") or []),
            "distance": distance(shoot, seed, documents),
        },
    )


def distance(shoot: Manifest, seed: Manifest, documents: list[Manifest]) -> int | None:
    provider = seed["spec"]["provider"]
    try:
        existing = naive_scheduler.distances_for(shoot, documents)
    except NoSeed:
        return None
    if existing:
        return existing.get(provider["region"])
    other = 0 if provider["type"] == shoot["spec"]["provider"]["type"] else 2
    return naive_scheduler.region_distance(provider["region"], shoot["spec"]["region"]) + other


def farthest(shoot: Manifest, documents: list[Manifest]) -> int:
    found = [distance(shoot, seed, documents) for seed in naive_scheduler.of(documents, "Seed")]
    return max([each for each in found if each is not None], default=0)
