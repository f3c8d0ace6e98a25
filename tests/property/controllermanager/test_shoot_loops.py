"""What always holds of expiry, of updates and of maintenance, whatever the shoot and the profile."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from gardenbus.common.api.document import Document
from gardenbus.common.api.garden.expirable_versions import numbers_of
from gardenbus.common.api.garden.quotas import EXPIRATION_ANNOTATION
from gardenbus.common.ports.clock import timestamp
from gardenbus.controllermanager.domain.shoot_expiry import AnnotateExpiration, DeleteExpired, decide_expiry
from gardenbus.controllermanager.domain.shoot_maintenance import (
    MaintainNow,
    begun,
    decide_maintenance,
    ended,
    plan_maintenance,
)
from gardenbus.controllermanager.domain.shoot_updates import maintained_spec
from tests.support.builders import a_shoot, merged

START = datetime(2026, 3, 1, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)

people = st.one_of(st.none(), st.integers(0, 60).map(lambda days: timestamp(START + days * DAY)), st.just("never"))


@given(
    st.lists(
        st.tuples(st.integers(1, 48), st.one_of(st.none(), st.integers(1, 20)), people, st.booleans()),
        min_size=1,
        max_size=30,
    )
)
def test_no_shoot_outlives_the_limit_that_it_has_had_all_along(
    steps: list[tuple[int, int | None, str | None, bool]],
) -> None:
    """Hours pass, Quotas change, and people write whatever they like into the annotation."""
    shoot, now, limited_since, least = a_shoot(metadata={"creationTimestamp": timestamp(START)}), START, START, 0
    touched = False
    for hours, days, written, writes in steps:
        now += hours * HOUR
        if writes:
            touched = True
            shoot = merged(shoot, {"metadata": {"annotations": {EXPIRATION_ANNOTATION: written}}})
        lifetime = None if days is None else days * DAY
        for _ in range(3):
            decision = decide_expiry(shoot, lifetime, now)
            if isinstance(decision, DeleteExpired):
                assert decision.expired_at < now
                return
            if isinstance(decision, AnnotateExpiration):
                shoot = merged(shoot, decision.patch)
        annotation = shoot["metadata"].get("annotations", {}).get(EXPIRATION_ANNOTATION)
        if lifetime is None:
            assert annotation is None
        else:
            assert annotation is not None
            assert datetime.fromisoformat(annotation) <= max(now, START) + lifetime
        limited_since, least = (now, 0) if lifetime is None else (limited_since, max(least, days or 0))
        if lifetime is not None and not touched and limited_since == START:
            assert now <= START + least * DAY + HOUR * 48


numbers = st.tuples(st.integers(1, 3), st.integers(0, 4), st.integers(0, 4)).map(lambda each: "{}.{}.{}".format(*each))


def an_entry(version: str, classification: str, *, is_expired: bool) -> Document:
    expiration = {"expirationDate": "2026-01-01T00:00:00Z"} if is_expired else {}
    return {"version": version, "classification": classification, **expiration}


def version_of(entry: Document) -> str:
    return str(entry["version"])


classifications = st.sampled_from(["preview", "supported", "deprecated"])
listed = st.lists(
    st.builds(an_entry, numbers, classifications, is_expired=st.booleans()), max_size=8, unique_by=version_of
)


@given(
    control_plane=numbers,
    pool=st.one_of(st.none(), numbers),
    image=numbers,
    kubernetes=listed,
    images=listed,
    strategy=st.sampled_from(["patch", "minor", "major"]),
    is_automatic=st.booleans(),
)
def test_updates_go_up_to_what_is_offered(
    *,
    control_plane: str,
    pool: str | None,
    image: str,
    kubernetes: list[Document],
    images: list[Document],
    strategy: str,
    is_automatic: bool,
) -> None:
    offer: Document = {
        "kubernetes": {"versions": kubernetes},
        "machineImages": [{"name": "linux", "versions": images, "updateStrategy": strategy}],
    }
    machine: Document = {"type": "small", "image": {"name": "linux", "version": image}}
    worker: Document = {"name": "pool", "machine": machine, **({"kubernetes": {"version": pool}} if pool else {})}
    spec: Document = {
        "kubernetes": {"version": control_plane},
        "provider": {"workers": [worker]},
        "maintenance": {"autoUpdate": {"kubernetesVersion": is_automatic, "machineImageVersion": is_automatic}},
    }
    found = maintained_spec(spec, offer, START)
    for update in found.updates:
        if update.version is None:
            continue
        source = images if update.image else kubernetes
        entry = next((one for one in source if one["version"] == update.version), None)
        assert entry is not None or update.version == found.spec["kubernetes"]["version"]
        assert entry is None or entry["classification"] != "preview"
        is_capped = not update.image and update.version == found.spec["kubernetes"]["version"]
        assert numbers_of(update.version) > numbers_of(update.before) or is_capped
        if not update.image:
            before, after = numbers_of(update.before), numbers_of(update.version)
            assert is_capped or after[0] == before[0]
            assert is_capped or after[1] <= before[1] + 1
    own = found.spec["provider"]["workers"][0].get("kubernetes", {}).get("version")
    if pool is not None and numbers_of(pool) <= numbers_of(control_plane):
        assert numbers_of(own) <= numbers_of(found.spec["kubernetes"]["version"])
    if not found.updates:
        assert found.spec is spec


@given(uid=st.text(min_size=1), begin=st.integers(0, 23), seconds=st.lists(st.integers(1, 40_000), max_size=40))
def test_however_often_it_is_looked_at_a_window_has_one_maintenance(uid: str, begin: int, seconds: list[int]) -> None:
    shoot = a_shoot(
        metadata={"uid": uid, "creationTimestamp": "2025-01-01T00:00:00Z"},
        spec={
            "maintenance": {"timeWindow": {"begin": f"{begin:02}0000+0000", "end": f"{(begin + 2) % 24:02}0000+0000"}}
        },
    )
    now, maintained = START, list[datetime]()
    for step in seconds:
        now += timedelta(seconds=step)
        decision = decide_maintenance(shoot, now)
        if isinstance(decision, MaintainNow):
            shoot = ended(begun(shoot, plan_maintenance(shoot, {}, now), now))
            maintained.append(now)
            assert not isinstance(decide_maintenance(shoot, now), MaintainNow)
    opened = [(at - timedelta(hours=begin)).date() for at in maintained]
    assert len(opened) == len(set(opened))
    assert all((at - timedelta(hours=begin)).hour < 2 for at in maintained)
