from datetime import UTC, datetime, timedelta
from typing import Any

from gardenbus.common.api.conditions import conditions_of, get_condition
from gardenbus.common.api.document import Document
from gardenbus.lifecycle.domain.conditions import (
    SHOOT_CONDITIONS,
    SHOOT_CONSTRAINTS,
    ExpireSeed,
    SeedAlreadyExpired,
    SeedNeverReported,
    decide_silent_seed,
    expire_shoot,
    with_reconcile_annotation,
)
from gardenbus.lifecycle.domain.silence import Silence, cause_of_silence, expired_certificate
from tests.support.builders import a_condition, a_seed, a_shoot

NOON = datetime(2026, 1, 2, 12, 0, tzinfo=UTC)
WRITTEN = "2026-01-02T12:00:00Z"
SHOOT_PERIOD = timedelta(seconds=200)


def decide(seed: Document, *, later: float = 0) -> SeedNeverReported | ExpireSeed | SeedAlreadyExpired:
    return decide_silent_seed(seed, NOON + timedelta(seconds=later), SHOOT_PERIOD)


def written(seed: Document) -> Document:
    decision = decide(seed)
    assert isinstance(decision, ExpireSeed)
    return decision.document


def the(document: Document, kind: str, field: str = "conditions") -> Document:
    condition = get_condition(conditions_of(document, field), kind)
    assert condition is not None
    return condition


def test_a_seed_that_never_reported_is_left_alone() -> None:
    assert decide(a_seed(ready=False)) == SeedNeverReported()
    assert decide(a_seed(status={"conditions": []})) == SeedNeverReported()


def test_a_silent_seed_turns_unknown() -> None:
    ready = the(written(a_seed()), "GardenletReady")
    assert (ready["status"], ready["reason"]) == ("Unknown", "StatusUnknown")
    assert ready["message"] == "Gardenlet stopped posting status updates."
    assert ready["lastTransitionTime"] == ready["lastUpdateTime"] == WRITTEN


def test_a_silent_seed_keeps_its_last_heartbeat_and_the_cause() -> None:
    silence = Silence(NOON - timedelta(seconds=40), "Its client certificate expired at 2026-01-02T11:59:00Z.")
    decision = decide_silent_seed(a_seed(), NOON, SHOOT_PERIOD, silence)

    assert isinstance(decision, ExpireSeed)
    ready = the(decision.document, "GardenletReady")
    assert ready["lastHeartbeatTime"] == "2026-01-02T11:59:20Z"
    assert ready["message"] == decision.message
    assert decision.message == (
        "Gardenlet stopped posting status updates. Last heartbeat: 2026-01-02T11:59:20Z. "
        "Its client certificate expired at 2026-01-02T11:59:00Z."
    )


def test_what_was_known_when_a_silence_began_is_not_overwritten_by_one_who_knows_less() -> None:
    first = decide_silent_seed(a_seed(), NOON, SHOOT_PERIOD, Silence(NOON - timedelta(seconds=40), "Why."))
    assert isinstance(first, ExpireSeed)

    again = decide_silent_seed(first.document, NOON + timedelta(seconds=5), SHOOT_PERIOD, Silence())

    assert again == SeedAlreadyExpired(shoots_are_due=False)


def test_the_cause_of_a_silence_is_a_revocation_before_the_end_of_a_certificate() -> None:
    ended = a_seed("aws", status={"clientCertificateExpirationTimestamp": "2026-01-02T11:00:00Z"})
    revoked = {"seed:aws": "2026-01-02T11:30:00.25Z stolen", "seed:other": "2026-01-02T11:30:00Z", "0123": ""}

    assert cause_of_silence(ended, revoked, NOON) == "Its credentials were revoked at 2026-01-02T11:30:00Z (stolen)."
    assert cause_of_silence(a_seed("other"), revoked, NOON) == "Its credentials were revoked at 2026-01-02T11:30:00Z."
    assert cause_of_silence(ended, {}, NOON) == "Its client certificate expired at 2026-01-02T11:00:00Z."
    assert cause_of_silence(a_seed("aws"), {}, NOON) == ""


def test_other_conditions_and_fields_of_the_seed_stay() -> None:
    care = a_condition("SeedSystemComponentsHealthy", extra="kept")
    seed = a_seed(status={"conditions": [care, a_condition("GardenletReady")], "mine": 1})
    document = written(seed)
    assert conditions_of(document)[0] == care
    assert document["status"]["mine"] == 1
    assert document["spec"] == seed["spec"]


def test_a_seed_without_the_condition_gets_it() -> None:
    document = written(a_seed(status={"conditions": [a_condition("SeedSystemComponentsHealthy")]}))
    assert the(document, "GardenletReady")["status"] == "Unknown"


def test_a_seed_that_was_unknown_for_another_reason_says_so_now_without_a_transition() -> None:
    seed = a_seed(status={"conditions": [a_condition("GardenletReady", "Unknown", reason="ConditionInitialized")]})
    ready = the(written(seed), "GardenletReady")
    assert ready["reason"] == "StatusUnknown"
    assert ready["lastTransitionTime"] != WRITTEN


def test_shoots_are_due_a_shoot_period_after_the_seed_turned_unknown() -> None:
    silent = written(a_seed())
    assert decide(silent, later=199) == SeedAlreadyExpired(shoots_are_due=False)
    assert decide(silent, later=200) == SeedAlreadyExpired(shoots_are_due=True)


def test_a_transition_time_that_cannot_be_read_does_not_hold_up_the_shoots() -> None:
    silent = written(a_seed())
    the(silent, "GardenletReady")["lastTransitionTime"] = "yesterday"
    assert decide(silent) == SeedAlreadyExpired(shoots_are_due=True)


def a_placed_shoot(**changes: Any) -> Document:
    return a_shoot(spec={"seedName": "aws-eu1"}, status={"seedName": "aws-eu1", **changes})


def test_all_conditions_and_constraints_of_a_shoot_turn_unknown_and_missing_ones_are_made() -> None:
    copied = a_condition("SeedGardenletReady")
    acl = a_condition("ACLConfigured")
    shoot = a_placed_shoot(
        conditions=[copied, a_condition("ControlPlaneHealthy", codes=["ERR_INFRA_DEPENDENCIES"])],
        constraints=[acl, a_condition("HibernationPossible")],
        technicalID="shoot--dev--apollo",
    )
    document = expire_shoot(shoot, "aws-eu1", NOON)
    assert document is not None
    assert conditions_of(document)[0] == copied
    assert conditions_of(document, "constraints")[0] == acl
    for field, kinds in (("conditions", SHOOT_CONDITIONS), ("constraints", SHOOT_CONSTRAINTS)):
        for kind in kinds:
            condition = the(document, kind, field)
            assert (condition["status"], condition["reason"]) == ("Unknown", "StatusUnknown")
            assert condition["message"] == "Gardenlet stopped sending heartbeats."
            assert "codes" not in condition
    assert document["status"]["technicalID"] == "shoot--dev--apollo"
    assert expire_shoot(document, "aws-eu1", NOON + timedelta(hours=1)) is None, "the second time nothing is written"


def test_a_shoot_without_workers_has_no_nodes_to_be_unknown() -> None:
    shoot = a_placed_shoot() | {"spec": {"provider": {"type": "aws"}}}
    document = expire_shoot(shoot, "aws-eu1", NOON)
    assert document is not None
    assert get_condition(conditions_of(document), "EveryNodeReady") is None


def test_only_the_word_of_the_status_says_whose_shoot_it_is() -> None:
    assert expire_shoot(a_shoot(spec={"seedName": "aws-eu1"}), "aws-eu1", NOON) is None
    migrating = a_shoot(spec={"seedName": "other"}, status={"seedName": "aws-eu1"})
    assert expire_shoot(migrating, "aws-eu1", NOON) is not None
    assert expire_shoot(migrating, "other", NOON) is None


def test_a_certificate_expires_by_the_clock() -> None:
    seed = a_seed(status={"clientCertificateExpirationTimestamp": WRITTEN})
    assert expired_certificate(seed, NOON) is None
    assert expired_certificate(seed, NOON + timedelta(seconds=1)) == WRITTEN
    assert expired_certificate(a_seed(), NOON) is None
    assert expired_certificate(a_seed(status={"clientCertificateExpirationTimestamp": "never"}), NOON) is None


def test_a_managed_seed_is_marked_once() -> None:
    managed_seed: Document = {"metadata": {"name": "aws-eu1", "annotations": {"mine": "1"}}, "spec": {}}
    marked = with_reconcile_annotation(managed_seed)
    assert marked is not None
    assert marked["metadata"]["annotations"] == {"mine": "1", "gardener.cloud/operation": "reconcile"}
    assert with_reconcile_annotation(marked) is None
    bare = with_reconcile_annotation({"metadata": {"name": "aws-eu1"}})
    assert bare is not None


def test_the_label_that_sums_a_shoot_up_tells_that_its_state_is_unknown() -> None:
    running = {"seedName": "aws-eu1", "lastOperation": {"type": "Reconcile", "state": "Succeeded", "progress": 100}}
    document = expire_shoot(a_shoot(spec={"seedName": "aws-eu1"}, status=running), "aws-eu1", NOON)
    assert document is not None
    assert document["metadata"]["labels"]["shoot.gardener.cloud/status"] == "unknown"
