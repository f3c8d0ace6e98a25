"""What the relay publishes for a page of the outbox."""

import msgspec
import pytest

from gardenbus.common.api.document import Document, StoredObject, split
from gardenbus.common.api.keys import Header, ObjectKey, Subjects
from gardenbus.common.ports.store import EventRecord
from gardenbus.relay.domain.announcements import announcements, roles, shoots_bound_soon
from gardenbus.relay.ports.outbox import EventEntry, ObjectEntry, OutboxPage, QueueEntry

SUBJECTS = Subjects()


def a_stored(
    kind: str, name: str, *, namespace: str = "", version: int = 7, status: Document | None = None, **spec: str
) -> StoredObject:
    document: Document = {
        "apiVersion": "core.gardener.cloud/v1beta1",
        "kind": kind,
        "metadata": {"name": name} | ({"namespace": namespace} if namespace else {}),
        "spec": spec,
        "status": status or {},
    }
    key = ObjectKey(kind.lower(), namespace, name)
    return StoredObject(
        key=key,
        parts=split(document),
        uid=f"uid-{name}",
        version=version,
        generation=1,
        created_at="2026-01-01T00:00:00Z",
    )


def entry_of(
    stored: StoredObject,
    *,
    verb: str = "modified",
    left: tuple[str, ...] = (),
    unblock_index: int = 0,
    binding: bool = True,
) -> ObjectEntry:
    return ObjectEntry("1-0", stored.key, stored.version, stored.uid, verb, binding, left, unblock_index)  # pyright: ignore[reportArgumentType]


def page_of(*entries: ObjectEntry, objects: tuple[StoredObject | None, ...]) -> OutboxPage:
    keys = [entry.key for entry in entries]
    return OutboxPage(entries, dict(zip(keys, objects, strict=True)))


def test_a_shoot_in_a_band_that_has_a_seed_by_now_is_not_queued() -> None:
    placed, pending = (
        a_stored("Shoot", "apollo", namespace="dev", seedName="s1"),
        a_stored("Shoot", "b", namespace="dev"),
    )
    entries = [QueueEntry("1-0", f"scheduling.mine.+1.dev.{name}") for name in ("apollo", "b")]
    page = OutboxPage(entries, {placed.key: placed, pending.key: pending})
    loose = announcements(page, SUBJECTS, announced_unblock_index=0).loose
    assert [message.subject for message in loose] == ["garden.queue.scheduling.mine.+1.dev.b"]


def test_several_entries_of_one_object_become_one_message_with_its_current_document() -> None:
    shoot = a_stored("Shoot", "apollo", namespace="garden-dev", version=9, seedName="s1")
    older = msgspec.structs.replace(entry_of(shoot, verb="added"), version=8)
    page = OutboxPage([older, entry_of(shoot, binding=False)], {shoot.key: shoot})
    result = announcements(page, SUBJECTS, announced_unblock_index=0)
    assert [message.subject for message in result.changed] == ["garden.changed.shoot.garden-dev.apollo"]
    assert result.changed[0].headers[Header.VERSION] == "9"
    assert result.changed[0].headers[Header.VERB] == "added"
    assert [message.subject for message in result.bindings] == ["garden.binding.s1.garden-dev.apollo"]


def test_a_status_write_is_not_announced_to_the_gardenlet() -> None:
    shoot = a_stored("Shoot", "apollo", namespace="garden-dev", seedName="s1")
    result = announcements(
        page_of(entry_of(shoot, binding=False), objects=(shoot,)), SUBJECTS, announced_unblock_index=0
    )
    assert len(result.changed) == 1
    assert result.bindings == []


def test_a_seed_that_a_shoot_left_gets_a_tombstone_and_the_others_their_roles() -> None:
    shoot = a_stored("Shoot", "apollo", namespace="garden-dev", status={"seedName": "s2"}, seedName="s3")
    result = announcements(
        page_of(entry_of(shoot, left=("s1", "s2")), objects=(shoot,)), SUBJECTS, announced_unblock_index=0
    )
    by_subject = {message.subject: message for message in result.bindings}
    assert by_subject["garden.binding.s1.garden-dev.apollo"].headers[Header.VERB] == "deleted"
    assert by_subject["garden.binding.s2.garden-dev.apollo"].headers[Header.ROLE] == "migrate-away"
    assert by_subject["garden.binding.s3.garden-dev.apollo"].headers[Header.ROLE] == "wait"
    assert by_subject["garden.binding.s1.garden-dev.apollo"].ttl is None


def test_a_seed_on_which_an_earlier_object_of_the_name_may_run_is_told_of_that_one() -> None:
    shoot = a_stored("Shoot", "apollo", namespace="garden-dev", seedName="s2")
    removed = msgspec.structs.replace(entry_of(shoot, verb="deleted", left=("s1",)), uid="uid-before", version=1)
    page = OutboxPage([removed, entry_of(shoot, verb="added")], {shoot.key: shoot})
    by_subject = {each.subject: each for each in announcements(page, SUBJECTS, announced_unblock_index=0).bindings}
    withdrawn = by_subject["garden.binding.s1.garden-dev.apollo"].headers
    assert (withdrawn[Header.VERB], withdrawn[Header.UID]) == ("deleted", "uid-before")
    assert Header.ROLE not in withdrawn, "it was removed, and has not moved"
    assert by_subject["garden.binding.s2.garden-dev.apollo"].headers[Header.UID] == shoot.uid


def test_a_shoot_runs_where_spec_says_until_status_says_otherwise() -> None:
    assert roles(a_stored("Shoot", "a", namespace="n")) == {}
    assert roles(a_stored("Shoot", "a", namespace="n", seedName="s1")) == {"s1": "run"}
    assert roles(a_stored("Shoot", "a", namespace="n", status={"seedName": "s1"}, seedName="s1")) == {"s1": "run"}


def views_of(
    state: StoredObject, *entries: ObjectEntry, audience: tuple[str, ...], gone: bool = False
) -> dict[str, tuple[str, bool]]:
    page = OutboxPage(entries, {state.key: None if gone else state}, {state.key: audience} if audience else {})
    messages = announcements(page, SUBJECTS, announced_unblock_index=0).bindings
    return {message.subject: (message.headers[Header.VERB], bool(message.body)) for message in messages}


VIEW = "garden.view.{}.shootstate.garden-dev.apollo"


def test_what_follows_a_shoot_is_shown_to_the_seeds_of_the_shoot() -> None:
    state = a_stored("ShootState", "apollo", namespace="garden-dev")
    assert views_of(state, entry_of(state, binding=False), audience=("s1", "s2")) == {
        VIEW.format("s1"): ("modified", True),
        VIEW.format("s2"): ("modified", True),
    }
    assert views_of(state, entry_of(state), audience=()) == {}


def test_what_follows_a_shoot_is_withdrawn_where_it_no_longer_is() -> None:
    state = a_stored("ShootState", "apollo", namespace="garden-dev")
    left, left_and_back = entry_of(state, left=("s1",)), entry_of(state, left=("s2", "s3"))
    assert views_of(state, left, left_and_back, audience=("s2",)) == {
        VIEW.format("s1"): ("deleted", False),
        VIEW.format("s2"): ("modified", True),
        VIEW.format("s3"): ("deleted", False),
    }


def test_what_followed_a_shoot_and_is_removed_is_withdrawn_from_all_and_shown_to_nobody() -> None:
    state = a_stored("ShootState", "apollo", namespace="garden-dev")
    removed = entry_of(state, verb="deleted", left=("s1", "s2"))
    withdrawn = {VIEW.format(seed): ("deleted", False) for seed in ("s1", "s2")}
    assert views_of(state, removed, audience=(), gone=True) == withdrawn
    moved = entry_of(state, left=("s1",))
    assert views_of(state, moved, audience=("s2",), gone=True) == {VIEW.format("s1"): ("deleted", False)}


def test_a_removed_object_becomes_a_tombstone_that_ends_by_itself() -> None:
    shoot = a_stored("Shoot", "apollo", namespace="garden-dev")
    result = announcements(
        page_of(entry_of(shoot, verb="deleted", left=("s1",)), objects=(None,)), SUBJECTS, announced_unblock_index=0
    )
    assert result.changed[0].body == b""
    assert result.changed[0].ttl is not None
    assert result.changed[0].headers[Header.UID] == "uid-apollo"
    assert [message.headers[Header.VERB] for message in result.bindings] == ["deleted"]


def test_an_earlier_removal_of_what_was_removed_again_after_this_page_is_left_to_that_entry_too() -> None:
    """The object that came in between may have been announced with the page before, in a higher version."""
    shoot = a_stored("Shoot", "apollo", namespace="garden-dev", version=8)
    page = page_of(entry_of(shoot, verb="deleted", left=("s1",)), objects=(None,))
    for removed, subjects in (({shoot.key: 12}, []), ({shoot.key: 8}, [SUBJECTS.changed(shoot.key)])):
        result = announcements(msgspec.structs.replace(page, removed=removed), SUBJECTS, announced_unblock_index=0)
        assert [message.subject for message in result.changed] == subjects
        assert [message.headers[Header.VERB] for message in result.bindings] == ["deleted"]


def test_an_object_removed_after_this_page_is_left_to_the_entry_that_says_so() -> None:
    shoot = a_stored("Shoot", "apollo", namespace="garden-dev")
    assert announcements(page_of(entry_of(shoot), objects=(None,)), SUBJECTS, announced_unblock_index=0).changed == []


def test_the_gain_counter_comes_with_the_last_message_of_a_kind_that_carries_gains() -> None:
    shoot = a_stored("Shoot", "apollo", namespace="garden-dev")
    one, other = a_stored("Seed", "s1"), a_stored("Seed", "s2")
    page = page_of(
        entry_of(one, unblock_index=5),
        entry_of(shoot, unblock_index=5),
        entry_of(other, unblock_index=6),
        objects=(one, shoot, other),
    )
    result = announcements(page, SUBJECTS, announced_unblock_index=4)
    assert [(m.subject.rsplit(".", 1)[1], m.headers[Header.UNBLOCK_INDEX]) for m in result.changed] == [
        ("apollo", "4"),
        ("s1", "4"),
        ("s2", "6"),
    ]
    assert result.unblock_index == 6


def test_a_gain_is_not_claimed_when_no_message_could_carry_it() -> None:
    shoot = a_stored("Shoot", "apollo", namespace="garden-dev")
    assert (
        announcements(
            page_of(entry_of(shoot, unblock_index=5), objects=(shoot,)), SUBJECTS, announced_unblock_index=4
        ).unblock_index
        == 4
    )


def test_work_is_queued_once_and_takes_its_timer_with_it() -> None:
    page = OutboxPage([QueueEntry("1-0", "scheduling.a.ns.x"), QueueEntry("2-0", "scheduling.a.ns.x")], {})
    loose = announcements(page, SUBJECTS, announced_unblock_index=0).loose
    assert [message.subject for message in loose] == ["garden.queue.scheduling.a.ns.x"]
    assert loose[0].headers == {
        "Nats-Scheduler": "garden.later.scheduling.a.ns.x",
        "Nats-Schedule-Next": "purge",
    }


def test_an_event_names_the_object_as_kubernetes_does() -> None:
    record = EventRecord(
        ObjectKey("shoot", "garden-dev", "apollo"), "u", "Warning", "SchedulingFailed", "none fits", "me"
    )
    page = OutboxPage([EventEntry("1-0", record, "abcdef", 3, "2026-01-01T00:00:00Z", "2026-01-01T00:05:00Z")], {})
    message = announcements(page, SUBJECTS, announced_unblock_index=0).loose[0]
    document = msgspec.json.decode(message.body)
    assert message.subject == "garden.event.shoot.garden-dev.apollo"
    assert document["involvedObject"]["kind"] == "Shoot"
    assert document["involvedObject"]["apiVersion"] == "core.gardener.cloud/v1beta1"
    assert (document["count"], document["reason"]) == (3, "SchedulingFailed")


def test_a_seed_is_shown_to_its_own_gardenlet_at_every_change() -> None:
    seed = a_stored("Seed", "s1")
    result = announcements(page_of(entry_of(seed, binding=True), objects=(seed,)), SUBJECTS, announced_unblock_index=0)
    assert [message.subject for message in result.bindings] == ["garden.view.s1.seed._.s1"]


def test_a_seed_that_was_left_hears_of_it_even_when_the_shoot_is_gone_by_now() -> None:
    shoot = a_stored("Shoot", "apollo", namespace="garden-dev")
    result = announcements(page_of(entry_of(shoot, left=("s1",)), objects=(None,)), SUBJECTS, announced_unblock_index=0)
    assert result.changed == []
    assert [(m.subject, m.headers[Header.VERB]) for m in result.bindings] == [
        ("garden.binding.s1.garden-dev.apollo", "deleted")
    ]


def test_a_seed_that_was_left_hears_of_a_removal_since_in_its_version() -> None:
    """The seed may have been shown the shoot in any version up to that one: versions on a subject only grow."""
    shoot = a_stored("Shoot", "apollo", namespace="garden-dev", version=12)
    page = msgspec.structs.replace(page_of(entry_of(shoot, left=("s1",)), objects=(None,)), removed={shoot.key: 16})
    (binding,) = announcements(page, SUBJECTS, announced_unblock_index=0).bindings
    assert binding.headers[Header.VERSION] == "16"


def test_a_gain_waits_when_the_object_that_made_it_is_gone_by_now() -> None:
    seed, kept = a_stored("Seed", "s1"), a_stored("Shoot", "apollo", namespace="garden-dev")
    page = page_of(entry_of(seed, unblock_index=5), entry_of(kept, unblock_index=5), objects=(None, kept))
    result = announcements(page, SUBJECTS, announced_unblock_index=4)
    assert [message.headers[Header.UNBLOCK_INDEX] for message in result.changed] == ["4"]
    assert result.unblock_index == 4


def test_an_event_about_an_object_of_a_kind_that_nobody_knows_is_announced() -> None:
    record = EventRecord(ObjectKey("gadget", "garden-dev", "one"), "u", "Warning", "ManifestWarning", "a", "apiserver")
    entry = EventEntry("1-0", record, "abcdef", 1, "2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z")
    announced = announcements(OutboxPage([entry], {}), SUBJECTS, announced_unblock_index=0)
    (event,) = announced.loose
    assert event.subject == "garden.event.gadget.garden-dev.one"
    about = msgspec.json.decode(event.body)["involvedObject"]
    assert (about["kind"], about["name"]) == ("gadget", "one")


def queued(tail: str) -> QueueEntry:
    return QueueEntry("2-0", tail)


def test_a_shoot_that_has_a_seed_by_now_is_not_queued_for_its_scheduler() -> None:
    placed = a_stored("Shoot", "apollo", namespace="garden-dev", seedName="s1")
    pending = a_stored("Shoot", "gemini", namespace="garden-dev")
    entries = [
        *(entry_of(placed, verb="added"), queued("scheduling.default-scheduler.garden-dev.apollo")),
        *(entry_of(pending, verb="added"), queued("scheduling.default-scheduler.garden-dev.gemini")),
        *(queued("migration.garden-dev.apollo"), queued("scheduling.mine.garden-dev.elsewhere")),
    ]
    page = OutboxPage(entries, {placed.key: placed, pending.key: pending})

    assert [message.subject for message in announcements(page, SUBJECTS, announced_unblock_index=0).loose] == [
        "garden.queue.scheduling.default-scheduler.garden-dev.gemini",
        "garden.queue.migration.garden-dev.apollo",
        "garden.queue.scheduling.mine.garden-dev.elsewhere",
    ]
    assert shoots_bound_soon(page, announced_unblock_index=0) == {pending.key}


def test_a_queued_shoot_that_is_gone_or_on_no_page_is_not_bound_soon() -> None:
    gone = a_stored("Shoot", "apollo", namespace="garden-dev")
    entries = [entry_of(gone), queued("scheduling.mine.garden-dev.apollo"), queued("scheduling.mine.garden-dev.other")]
    page = OutboxPage(entries, {gone.key: None})

    assert shoots_bound_soon(page, announced_unblock_index=0) == frozenset()
    assert len(announcements(page, SUBJECTS, announced_unblock_index=0).loose) == 2


@pytest.mark.parametrize(("announced", "bound_soon"), [(4, 0), (5, 1)])
def test_a_hint_is_not_awaited_before_the_cluster_event_on_its_page_and_a_seed_that_only_reports_is_none(
    announced: int, bound_soon: int
) -> None:
    seed, shoot = a_stored("Seed", "s1"), a_stored("Shoot", "apollo", namespace="garden-dev")
    entries = [entry_of(seed, unblock_index=5), entry_of(shoot, verb="added", unblock_index=5)]
    page = OutboxPage(entries, {seed.key: seed, shoot.key: shoot})
    assert len(shoots_bound_soon(page, announced_unblock_index=announced)) == bound_soon


def test_no_hint_is_awaited_for_a_shoot_that_was_unblocked() -> None:
    shoot = a_stored("Shoot", "apollo", namespace="garden-dev")
    entries = [entry_of(shoot, verb="modified"), queued("scheduling.default-scheduler.garden-dev.apollo")]
    assert shoots_bound_soon(OutboxPage(entries, {shoot.key: shoot}), announced_unblock_index=0) == frozenset()


def test_the_last_message_of_a_page_says_up_to_which_version_everything_has_been_announced() -> None:
    seed = a_stored("Seed", "aws", version=12)
    shoot = a_stored("Shoot", "apollo", namespace="garden-dev", version=30)
    older = msgspec.structs.replace(entry_of(shoot), version=14)
    page = OutboxPage([entry_of(seed), older], {seed.key: seed, shoot.key: shoot})
    changed = announcements(page, SUBJECTS, announced_unblock_index=0).changed
    assert [message.headers.get(Header.SETTLED) for message in changed] == [None, "14"]
