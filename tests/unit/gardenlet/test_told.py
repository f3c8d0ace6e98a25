"""What a gardenlet has been told: bindings, and views of what hangs on its shoots."""

from datetime import UTC, datetime

from gardenbus.common.ports.bus import Delivered
from gardenbus.common.resources.document import Document, encode
from gardenbus.common.resources.keys import Header, ObjectKey, Subjects
from gardenbus.gardenlet.reconcilers.told import Gone, Told

SUBJECTS = Subjects()
STATE = ObjectKey("shootstate", "garden-dev", "apollo")
MANAGED_SEED = ObjectKey("managedseed", "garden", "grown")
AT = datetime(2026, 1, 2, tzinfo=UTC)


def a_view(key: ObjectKey, sequence: int = 1, *, gone: bool = False, **fields: object) -> Delivered:
    document: Document = {"metadata": {"name": key.name, "namespace": key.namespace}, **fields}
    verb = "deleted" if gone else "modified"
    return Delivered(SUBJECTS.view("aws-eu1", key), encode(document), {Header.VERB: verb}, sequence, AT, None)


def told_of(*messages: Delivered) -> Told:
    told = Told(SUBJECTS, "aws-eu1")
    for message in messages:
        told.take(message)
    return told


def test_shoot_states_and_managed_seeds_are_kept() -> None:
    told = told_of(a_view(STATE, spec={"gardener": []}), a_view(MANAGED_SEED))

    state, managed_seed = told.shoot_state("garden-dev", "apollo"), told.managed_seed("garden", "grown")

    assert state is not None
    assert state["spec"] == {"gardener": []}
    assert managed_seed is not None
    assert told.shoot_state("garden", "grown") is None


def test_a_view_is_answered_with_its_key() -> None:
    assert Told(SUBJECTS, "aws-eu1").take(a_view(STATE)) == STATE


def test_a_tombstone_ends_a_view_until_it_was_obeyed() -> None:
    told = told_of(a_view(MANAGED_SEED), a_view(MANAGED_SEED, 7, gone=True))

    assert told.managed_seed("garden", "grown") is None
    assert told.objects[MANAGED_SEED] == Gone(7)

    told.forget_object(MANAGED_SEED, Gone(6))
    assert MANAGED_SEED in told.objects
    told.forget_object(MANAGED_SEED, Gone(7))
    assert MANAGED_SEED not in told.objects


def test_a_replay_forgets_the_views_that_the_stream_does_not_hold_any_more() -> None:
    told = told_of(a_view(STATE), a_view(MANAGED_SEED))

    told.replay_began()
    assert told.shoot_state("garden-dev", "apollo") is not None
    told.take(a_view(MANAGED_SEED, 3))
    told.replay_ended()

    assert told.shoot_state("garden-dev", "apollo") is None
    assert told.managed_seed("garden", "grown") is not None


def test_only_what_the_stream_holds_is_kept_when_a_standby_becomes_active() -> None:
    told = told_of(a_view(STATE), a_view(MANAGED_SEED))

    told.keep_only({SUBJECTS.view("aws-eu1", STATE)}, known={}, known_objects=dict(told.objects))

    assert list(told.objects) == [STATE]


def test_what_only_a_replay_tells_is_hearsay_until_it_is_told_again() -> None:
    told = told_of(a_view(STATE), a_view(MANAGED_SEED))
    told.replay_ended()
    assert told.is_hearsay(STATE)

    told.take(a_view(STATE, 5))
    assert not told.is_hearsay(STATE)
    assert told.is_hearsay(MANAGED_SEED)

    told.replay_began()
    told.take(a_view(STATE, 5))
    told.replay_ended()
    assert told.is_hearsay(STATE)
    assert not told.is_hearsay(MANAGED_SEED)
