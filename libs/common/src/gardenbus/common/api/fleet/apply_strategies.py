"""Strategy by which manifests are applied: KubeFleet's `ApplyStrategy`, with its defaults.

Source: KubeFleet's `apis/placement/v1beta1/clusterresourceplacement_types.go`.
"""

from typing import Literal, NamedTuple

from gardenbus.common.api.document import Document, section

REPORT_DIFF = "ReportDiff"
"""Type of an applyStrategy that only compares."""


class ApplyStrategy(NamedTuple):
    """The fields that an agent acts on."""

    type: Literal["ClientSideApply", "ServerSideApply", "ReportDiff"] = "ClientSideApply"
    comparison: Literal["PartialComparison", "FullComparison"] = "PartialComparison"
    """`FullComparison`: fields that the manifest does not have count as differences."""

    when_to_apply: Literal["Always", "IfNotDrifted"] = "Always"
    when_to_take_over: Literal["Always", "IfNoDiff", "Never"] = "Always"
    """Of objects that were there before."""

    allow_co_ownership: bool = False
    force: bool = False
    """Take fields of other managers, with ServerSideApply."""

    @property
    def takes_fields(self) -> bool:
        """True if fields that others manage are taken: always without ServerSideApply, as a client's patch does it."""
        return self.force or self.type != "ServerSideApply"


DEFAULT_STRATEGY = ApplyStrategy()


def strategy_of(work: Document) -> ApplyStrategy:
    """The strategy of a Work; unknown values count as the default (the apiserver admits none)."""
    given = section(work, "spec", "applyStrategy")
    texts = {
        "type": _choice(given.get("type"), ("ServerSideApply", REPORT_DIFF)),
        "comparison": _choice(given.get("comparisonOption"), ("FullComparison",)),
        "when_to_apply": _choice(given.get("whenToApply"), ("IfNotDrifted",)),
        "when_to_take_over": _choice(given.get("whenToTakeOver"), ("IfNoDiff", "Never")),
    }
    chosen = DEFAULT_STRATEGY._replace(**{name: text for name, text in texts.items() if text})
    return chosen._replace(
        allow_co_ownership=given.get("allowCoOwnership") is True,
        force=section(given, "serverSideApplyConfig").get("force") is True,
    )


def only_compares(document: Document) -> bool:
    """True if the manifests of a Work, or a binding, are compared with the cluster and not applied."""
    return section(document, "spec", "applyStrategy").get("type") == REPORT_DIFF


def _choice(value: object, others: tuple[str, ...]) -> str:
    """A value that is not the default."""
    return value if isinstance(value, str) and value in others else ""
