"""Compares Gardener's validation with the one here, change by change, and records what was found.

    python -m tests.support.gardener_comparison PROGRAM [--seed N] [--count N] [--record]

`PROGRAM` answers for Gardener. Prints how many changes both say the same of, which are accepted or rejected here alone
and where, and at which paths both reject differently; `--record` writes the cases to `generated_results.json`, for
tests without it.
"""

import argparse
import json
import re
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, cast

from gardenbus.common.api.document import Document
from tests.support.gardener_changes import Changes, bases, pool_of
from tests.support.gardener_results import FOLDER, IN_PLACE_FEATURE, OF_STORED, changed, rejected_fields

RECORDED = FOLDER.parent / "generated_results.json"
_PLACE = re.compile(r"\[[^\]\[]*\]")
_TAKEN: Mapping[tuple[str, str], str] = {
    ("WorkloadIdentity", "status.sub"): "tokens",
    ("ControllerDeployment", "[]"): "optional",
    ("Shoot", "spec.kubernetes.version"): "filled",
    ("Shoot", "spec.provider.workers[].kubernetes.version"): "filled",
    ("Shoot", "spec.provider.workers[].machine.image"): "filled",
    ("Shoot", "spec.provider.workers[].machine.image.version"): "filled",
    ("ManagedSeedSet", "spec.shootTemplate.spec.kubernetes.version"): "filled",
    ("ManagedSeedSet", "spec.shootTemplate.spec.provider.workers[].kubernetes.version"): "filled",
    ("Shoot", "spec.secretBindingName"): "optional",
    ("Shoot", "spec.cloudProfileName"): "older",
    ("Shoot", "spec.networking.type"): "workerless",
    ("Shoot", "spec.networking.pods"): "pending",
    ("Shoot", "spec.networking.nodes"): "pending",
    ("Shoot", "spec.networking.services"): "pending",
    ("Shoot", "spec.kubernetes.kubeAPIServer.encryptionConfig.resources"): "unreported",
    ("Shoot", "spec.hibernation.enabled"): "unreported",
    ("Shoot", "spec.dns.providers[].credentialsRef"): "filled",
    ("ManagedSeedSet", "spec.shootTemplate.spec.dns.providers[].secretName"): "filled",
    ("ManagedSeedSet", "spec.shootTemplate.spec.provider.workers[].maxUnavailable"): "filled",
    ("SecretBinding", "provider"): "optional",
    ("ManagedSeedSet", "spec.shootTemplate.spec.kubernetes.kubeProxy.mode"): "filled",
    ("ManagedSeedSet", "spec.shootTemplate.spec.cloudProfile.kind"): "filled",
    ("ManagedSeedSet", "spec.shootTemplate.spec.systemComponents.coreDNS.autoscaling.mode"): "filled",
    ("Shoot", "spec.provider.workers[].machine.image.name"): "filled",
    ("Seed", "spec.dns.defaults[].type"): "optional",
    ("Seed", "spec.ingress.controller.kind"): "optional",
    ("NamespacedCloudProfile", "spec.parent"): "filled",
    ("Shoot", "spec.provider.workers[].name"): "own",
    ("Seed", "spec.settings.zoneSelection.mode"): "optional",
    ("Seed", "spec.dns.defaults[].credentialsRef"): "optional",
    **{
        ("Seed", f"spec.dns.{where}.credentialsRef.{part}"): "optional"
        for where in ("internal", "defaults[]")
        for part in ("apiVersion", "kind", "name", "namespace")
    },
    ("Seed", "spec.dns.provider.credentialsRef"): "optional",
    ("CloudProfile", "spec.machineImages[].versions"): "optional",
    ("CloudProfile", "spec.machineTypes[].architecture"): "optional",
    ("CloudProfile", "spec.bastion.machineImage.version"): "optional",
    ("Seed", "spec.ingress"): "optional",
    ("Seed", "spec.networks.pods"): "optional",
    ("Seed", "spec.networks.services"): "optional",
    ("CloudProfile", "spec.kubernetes.versions"): "optional",
    ("CloudProfile", "spec.machineImages"): "optional",
    ("CloudProfile", "spec.machineTypes"): "optional",
    ("CloudProfile", "spec.regions"): "optional",
    ("NamespacedCloudProfile", "spec.parent.kind"): "filled",
    ("CredentialsBinding", "provider.type"): "optional",
    ("SecretBinding", "provider.type"): "optional",
    ("Project", "spec.createdBy.apiGroup"): "filled",
    ("Project", "spec.namespace"): "filled",
    **{("Seed", f"spec.dns.{part}"): "optional" for part in ("provider", "provider.type", "internal", "internal.type")},
    **{("Seed", f"spec.dns.internal.{part}"): "optional" for part in ("domain", "credentialsRef")},
    **{("Seed", f"spec.{part}"): "optional" for part in ("ingress.domain", "backup.provider", "backup.credentialsRef")},
}
"""Why a change is accepted here alone, by the kind and the first field for which Gardener rejects it."""
_REJECTED: Mapping[tuple[str, str], str] = {
    ("InternalSecret", "type"): "own",
    **dict.fromkeys((("BackupEntry", "spec.seedName"), ("BackupBucket", "spec.seedName")), "own"),
    **dict.fromkeys(
        (("ManagedSeed", f"spec.{way}") for way in ("gardenlet", "seedTemplate", "seed", "shoot.name")), "own"
    ),
    **{("ManagedSeedSet", f"spec.template.spec.{way}"): "own" for way in ("seedTemplate", "seed")},
    ("Shoot", "spec.kubernetes.version"): "own",
    ("ManagedSeedSet", "spec.shootTemplate.spec.kubernetes.kubelet.imageGCLowThresholdPercent"): "own",
    ("ManagedSeedSet", "spec.shootTemplate.spec.exposureClassName"): "own",
    ("NamespacedCloudProfile", "spec.machineImages[].versions[].cri[].containerRuntimes[].type"): "own",
    ("ExposureClass", "scheduling.seedSelector.providerTypes[]"): "own",
    ("Project", "spec.namespace"): "own",
    ("Shoot", "spec.networking.pods"): "own",
    ("Shoot", "spec.networking.services"): "own",
    ("ControllerRegistration", "spec.resources[].reconcileTimeout"): "own",
    **dict.fromkeys(
        (("Shoot", f"spec.{field}") for field in ("seedName", "exposureClassName", "controlPlane.zones")), "own"
    ),
    ("Shoot", "spec.controlPlane.zones[]"): "own",
    ("Shoot", "spec.provider.workers[].zones[]"): "own",
    ("Shoot", "spec.seedSelector.providerTypes[]"): "own",
    ("Shoot", "spec.accessRestrictions[].name"): "own",
    ("Seed", "spec.accessRestrictions[].name"): "own",
    ("CloudProfile", "spec.regions[].accessRestrictions[].name"): "own",
    ("NamespacedCloudProfile", "spec.machineImages[].name"): "own",
    ("NamespacedCloudProfile", "spec.machineImages[].versions[].lifecycle"): "own",
    ("CloudProfile", "spec.machineImages[].versions[].lifecycle"): "own",
    ("NamespacedCloudProfile", "spec.machineImages[].versions[].cri[].name"): "own",
    ("NamespacedCloudProfile", "spec.machineImages[].versions[].classification"): "own",
    ("NamespacedCloudProfile", "spec.machineImages[].versions[].architectures[]"): "own",
    ("CloudProfile", "spec.machineImages[].versions[].capabilityFlavors"): "own",
    ("CloudProfile", "spec.seedSelector.providerTypes[]"): "own",
    ("ExposureClass", "scheduling"): "own",
    ("ExposureClass", "scheduling.seedSelector.matchExpressions[].values[]"): "own",
    ("Shoot", "spec.kubernetes.kubeControllerManager.nodeCIDRMaskSize"): "own",
    ("Shoot", "spec.systemComponents.coreDNS.autoscaling.mode"): "own",
    ("ManagedSeedSet", "spec.shootTemplate.spec.accessRestrictions[].name"): "own",
    ("ManagedSeedSet", "spec.shootTemplate.spec.seedName"): "own",
    ("ManagedSeed", "spec.seedTemplate.spec.networks.nodes"): "own",
    ("Seed", "spec.taints[].key"): "own",
    ("Shoot", "spec.provider.workers[].maxUnavailable"): "own",
    ("CloudProfile", "spec.machineCapabilities[].values[]"): "own",
    **{
        (f"{scope}CloudProfile", f"spec.{part}"): "own"
        for scope in ("", "Namespaced")
        for part in (
            "kubernetes.versions[].version",
            "kubernetes.versions[].lifecycle",
            "machineImages[].versions[].version",
        )
    },
    ("ManagedSeedSet", "spec.shootTemplate.spec.controlPlane.highAvailability.failureTolerance.type"): "own",
}
"""Why a change is rejected here alone, by the kind and the first field that is named here."""
_SPELLED: Mapping[str, str] = {
    "spec.members[].roles": "spec.members[].role",
    "spec.maintenance.timeWindow.begin/end": "spec.maintenance.timeWindow",
    "spec.hibernation.schedules[].start/end": "spec.hibernation.schedules[]",
    "spec.extensions[].resources[]": "spec.resources[]",
    "stringData": "data",
    "spec.kubernetes.clusterAutoScaler": "spec.kubernetes.clusterAutoscaler",
    "spec.kubernetes.verticalPodAutoScaler": "spec.kubernetes.verticalPodAutoscaler",
    **{
        f"spec.kubernetes.clusterAutoscaler.{kind}Taints.{kind.title()}Taints": "spec.kubernetes.clusterAutoscaler"
        for kind in ("startup", "status", "ignore")
    },
}
"""Fields that Gardener names in another way than they are written, without places in lists."""
_UNCHECKED_SIGNALS = re.compile(r"^spec\.(provider\.workers\[\]\.)?kubernetes\.(kubelet\.)*eviction\w+\.")


_VERSION = "spec.kubernetes.version"
_FOLLOWERS: Sequence[tuple[str, re.Pattern[str]]] = (
    (
        _VERSION,
        re.compile(
            r"spec\.(provider\.workers\[\]\.)?kubernetes\."
            r".*(admissionPlugins|runtimeConfig|featureGates|version|clusterAutoscaler)"
        ),
    ),
    ("spec.networking.ipFamilies", re.compile(r"spec\.kubernetes\.kubeControllerManager\.nodeCIDRMaskSize$")),
    ("spec.provider.workers", re.compile(r"spec\.kubernetes\.kubeControllerManager\.nodeCIDRMaskSize$")),
)
"""Fields that Gardener names because of another, which both name: by its default, or as no version can be compared."""


def _is_named(reasons: Mapping[tuple[str, str], str], kind: str, field: str) -> bool:
    if kind == "ManagedSeed":  # of another way to state the seed nothing is compared there
        return any((kind, field[:end]) in reasons for end, sign in enumerate(f"{field}.") if sign == ".")
    return (kind, field) in reasons or (kind == "ManagedSeedSet" and ("Shoot", field) in reasons)


class Compared(NamedTuple):
    """A change, and the fields for which each side rejects it; empty where it is accepted."""

    name: str
    document: Document
    old: Document | None
    gardener: Sequence[str]
    here: Sequence[str]

    @property
    def is_same(self) -> bool:
        """True where both accept it, or neither does."""
        return bool(self.gardener) is bool(self.here)

    @property
    def place(self) -> tuple[str, str]:
        """The kind, and the first field for which one side rejects it, without places in lists."""
        return self.document["kind"], _PLACE.sub("[]", [*self.gardener, *self.here, ""][0])

    @property
    def paths(self) -> "Paths":
        """The fields that one side alone rejects it for, of a change that both reject."""
        return Paths(_apart(self.gardener, self.here), _apart(self.here, self.gardener))

    @property
    def orders(self) -> tuple[Sequence[str], Sequence[str]]:
        """The fields that each side names, in its order, each once and without places in lists."""
        theirs, ours = ([*dict.fromkeys(map(_spelled, fields))] for fields in (self.gardener, self.here))
        return theirs, ours

    @property
    def unexplained_paths(self) -> "Paths":
        """The same, without those for which a difference has its reason."""
        kind, paths = self.document["kind"], self.paths
        stops = _VERSION in map(_spelled, self.gardener)  # its check of all that is for Kubernetes
        return Paths(
            [each for each in paths.gardener if not _is_named(_TAKEN, kind, each) and not self._follows(each)],
            [
                each
                for each in paths.here
                if not (_is_named(_REJECTED, kind, each) or _UNCHECKED_SIGNALS.match(each))
                and not (stops and each.startswith("spec.kubernetes."))
            ],
        )

    def _follows(self, field: str) -> bool:
        """True for a field that Gardener names because of another."""
        causes = {_spelled(each) for each in (*self.gardener, *self.here)} - {_spelled(field)}
        return any(cause in causes and rule.match(_spelled(field)) for cause, rule in _FOLLOWERS)

    @property
    def reason(self) -> str:
        """Why both say different things; "" where nobody said."""
        first = next((each for each in self.gardener if not self._follows(each)), [*self.gardener, *self.here, ""][0])
        if any(_value_at(each, first) in ("", {}, []) for each in (self.document, self.old or self.document)):
            return "empty"
        if self.here and _UNCHECKED_SIGNALS.match(_spelled(first)):
            return "own"
        reasons, kind, field = _REJECTED if self.here else _TAKEN, self.document["kind"], _PLACE.sub("[]", first)
        if kind == "ManagedSeedSet" and field.startswith(_OF_TEMPLATE):
            return reasons.get((kind, field)) or reasons.get(("Shoot", _spelled(field)), "")
        return reasons.get((kind, field), "")


class Paths(NamedTuple):
    """Fields that one side alone names, without places in lists; none of them is beside, above or below another's."""

    gardener: Sequence[str]
    here: Sequence[str]


def _apart(of: Sequence[str], others: Sequence[str]) -> list[str]:
    """The fields of one side for which the other one has none at that place, above or below it."""
    named = [_spelled(each) for each in others]
    found = dict.fromkeys(_spelled(each) for each in of)
    return [each for each in found if not any(_is_at(each, other) for other in named)]


_OF_TEMPLATE = "spec.shootTemplate."
"""Beginning of the fields of a set that are those of a Shoot."""
_RENAMED = (
    ("imagefs", "imageFS"),
    ("nodefs", "nodeFS"),
    ("machineControllerManagerSettings", "machineControllerManager"),
)


def _spelled(field: str) -> str:
    place = _PLACE.sub("[]", field).removeprefix(_OF_TEMPLATE)
    if place.startswith("spec.machineCapabilities"):  # which Gardener names by capability
        return "spec.machineCapabilities"
    for theirs, ours in _RENAMED:
        place = place.replace(theirs, ours)
    return next(
        (f"{right}{place[len(wrong) :]}" for wrong, right in _SPELLED.items() if place.startswith(wrong)), place
    )


def _is_at(one: str, other: str) -> bool:
    """True where two fields are the same, or one holds the other."""
    return one == other or one.startswith((f"{other}.", f"{other}[")) or other.startswith((f"{one}.", f"{one}["))


def _value_at(document: Document, field: str) -> Any:
    """The value at a field as problems name it; None where there is none."""
    value: Any = document
    for step in re.findall(r"[^.\[\]]+", field):
        if isinstance(value, list):
            entries = cast("list[Any]", value)
            value = entries[int(step)] if step.isdecimal() and int(step) < len(entries) else None
        else:
            value = cast("Document", value).get(step) if isinstance(value, dict) else None
    return value


def compared(program: str, *, seed: int, count: int) -> Sequence[Compared]:
    """As many changes of each base, and four times as many of a Shoot's, put to both sides.

    Those that Gardener cannot read, or that break its program, are left out: they have a text of an error for a field.
    """
    manifests = bases()
    changes = Changes(pool_of(list(manifests.values())), seed)
    cases = [
        case
        for name, base in manifests.items()
        for case in changes.cases(name, base, count * (4 if base["kind"] == "Shoot" else 1))
    ]
    stored = [(name, old, None) for name, _, old in cases if old is not None]
    results = fields_of_gardener(program, [*cases, *stored])
    wrong = {name for (name, _, _), fields in zip(stored, results[len(cases) :], strict=True) if fields}
    return [
        Compared(name, document, old, fields, rejected_fields(document, old))
        for (name, document, old), fields in zip(cases, results, strict=False)
        if name not in wrong and not any(" " in field for field in fields)
    ]


def fields_of_gardener(program: str, cases: Sequence[tuple[str, Document, Document | None]]) -> Sequence[list[str]]:
    """The fields for which Gardener rejects each change, in its order; what cannot be read has none but its error."""
    questions = [
        json.dumps({"id": str(number), "new": document, **({"old": old} if old else {})})
        for number, (_, document, old) in enumerate(cases)
    ]
    completed = subprocess.run([program], input="\n".join(questions), capture_output=True, text=True, check=True)
    replies = sorted(map(json.loads, completed.stdout.splitlines()), key=lambda reply: int(reply["id"]))
    return [
        [reply["error"]]
        if reply.get("error")
        else [error["field"] for error in reply["errors"] if IN_PLACE_FEATURE not in error["detail"]]
        for reply in replies
    ]


def _are_as_long(one: Any, other: Any) -> bool:
    return len(one) == len(other)


def differences_between(before: Any, after: Any, path: tuple[str | int, ...] = ()) -> Iterator[Document]:
    """The changes that make one value of another, as cases have them; a list of another length is one value."""
    if isinstance(before, dict) and isinstance(after, dict):
        had, has = cast("Document", before), cast("Document", after)
        for name in {**had, **has}:
            if name not in has:
                yield {"path": [*path, name]}
            elif name not in had:
                yield {"path": [*path, name], "value": has[name]}
            else:
                yield from differences_between(had[name], has[name], (*path, name))
    elif isinstance(before, list) and isinstance(after, list) and _are_as_long(before, after):
        for place, (one, other) in enumerate(zip(cast("list[Any]", before), cast("list[Any]", after), strict=True)):
            yield from differences_between(one, other, (*path, place))
    elif before != after:
        yield {"path": list(path), "value": after}


def recorded_cases() -> Iterator[Compared]:
    """The cases that were recorded; `here` is found anew."""
    manifests = bases()
    for case in json.loads(RECORDED.read_text()):
        base = manifests[case["base"]]
        stored = {**base, "metadata": {**base["metadata"], **OF_STORED}}
        old = None if case["old"] is None else _made(stored, case["old"])
        document = _made(base if old is None else old, case["changes"])
        yield Compared(case["name"], document, old, case["rejected"], rejected_fields(document, old))


def _made(document: Document, changes: Sequence[Document]) -> Document:
    for change in changes:
        document = changed(document, change["path"], change)
    return document


def record(results: Sequence[Compared]) -> None:
    """Write cases down, a line each: their changes, and the fields for which Gardener rejects them."""
    manifests = bases()
    lines: list[str] = []
    for each in results:
        base_name = each.name.partition("-")[0]
        base = manifests[base_name]
        stored = {**base, "metadata": {**base["metadata"], **OF_STORED}}
        old = None if each.old is None else list(differences_between(stored, each.old))
        changes = list(differences_between(base if each.old is None else each.old, each.document))
        case = {"name": each.name, "base": base_name, "old": old, "changes": changes, "rejected": each.gardener}
        lines.append(json.dumps(case, ensure_ascii=False))
    RECORDED.write_text("[\n" + ",\n".join(lines) + "\n]\n")


def main() -> None:
    """Compare, and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    results = compared(options.program, seed=options.seed, count=options.count)
    if options.record:
        record(results)
    different = [each for each in results if not each.is_same]
    print(f"agree: {len(results) - len(different)} of {len(results)}")
    for title, found in (
        ("accepted here only", [each for each in different if each.gardener]),
        ("rejected here only", [each for each in different if each.here]),
    ):
        print(f"{title}: {len(found)}, {sum(not each.reason for each in found)} of them without a reason")
        for (place, reason), number in Counter((each.place, each.reason) for each in found).most_common():
            print(f"  {number:4} {' '.join(place)} {reason or next(e.name for e in found if e.place == place)}")
    both = [each for each in results if each.gardener and each.here]
    paths = [each for each in both if any(each.unexplained_paths)]
    same = sum(not any(each.paths) for each in both)
    print(f"rejected by both: {len(both)}, for the same paths {same}, without a reason for others {len(paths)}")
    for (kind, theirs, ours), number in Counter(
        (each.document["kind"], *map(tuple, each.unexplained_paths)) for each in paths
    ).most_common(40):
        print(f"  {number:4} {kind} Gardener: {', '.join(theirs)[:200]} here: {', '.join(ours)[:200]}")


if __name__ == "__main__":
    main()
