"""What a gardenlet has been told: bindings, and views of what hangs on its shoots."""

from datetime import UTC, datetime

from gardenbus.common.api.document import Document, encode
from gardenbus.common.api.keys import Header, ObjectKey, Subjects
from gardenbus.common.ports.bus import StreamMessage
from gardenbus.gardenlet.watch.binding_cache import BindingCache, Tombstone

SUBJECTS = Subjects()
STATE = ObjectKey("shootstate", "garden-dev", "apollo")
MANAGED_SEED = ObjectKey("managedseed", "garden", "grown")
AT = datetime(2026, 1, 2, tzinfo=UTC)


def a_view(key: ObjectKey, sequence: int = 1, *, gone: bool = False, **fields: object) -> StreamMessage:
    document: Document = {"metadata": {"name": key.name, "namespace": key.namespace}, **fields}
    verb = "deleted" if gone else "modified"
    return StreamMessage(SUBJECTS.view("aws-eu1", key), encode(document), {Header.VERB: verb}, sequence, AT, None)


def cache_of(*messages: StreamMessage) -> BindingCache:
    cache = BindingCache(SUBJECTS, "aws-eu1")
    for message in messages:
        cache.update(message)
    return cache


def test_shoot_states_and_managed_seeds_are_kept() -> None:
    cache = cache_of(a_view(STATE, spec={"gardener": []}), a_view(MANAGED_SEED))

    state, managed_seed = cache.shoot_state("garden-dev", "apollo"), cache.managed_seed("garden", "grown")

    assert state is not None
    assert state["spec"] == {"gardener": []}
    assert managed_seed is not None
    assert cache.shoot_state("garden", "grown") is None


def test_a_view_returns_its_key() -> None:
    assert BindingCache(SUBJECTS, "aws-eu1").update(a_view(STATE)) == STATE


def test_a_tombstone_ends_a_view_until_it_was_obeyed() -> None:
    cache = cache_of(a_view(MANAGED_SEED), a_view(MANAGED_SEED, 7, gone=True))

    assert cache.managed_seed("garden", "grown") is None
    assert cache.objects[MANAGED_SEED] == Tombstone(7)

    cache.forget_object(MANAGED_SEED, Tombstone(6))
    assert MANAGED_SEED in cache.objects
    cache.forget_object(MANAGED_SEED, Tombstone(7))
    assert MANAGED_SEED not in cache.objects


def test_a_replay_forgets_the_views_that_the_stream_does_not_hold_any_more() -> None:
    cache = cache_of(a_view(STATE), a_view(MANAGED_SEED))

    cache.replay_began()
    assert cache.shoot_state("garden-dev", "apollo") is not None
    cache.update(a_view(MANAGED_SEED, 3))
    cache.replay_ended()

    assert cache.shoot_state("garden-dev", "apollo") is None
    assert cache.managed_seed("garden", "grown") is not None


def test_only_what_the_stream_holds_is_kept_when_a_standby_becomes_active() -> None:
    cache = cache_of(a_view(STATE), a_view(MANAGED_SEED))

    cache.retain({SUBJECTS.view("aws-eu1", STATE)}, cached={}, cached_objects=dict(cache.objects))

    assert list(cache.objects) == [STATE]


def test_what_only_a_replay_contains_is_unconfirmed_until_it_is_announced_again() -> None:
    cache = cache_of(a_view(STATE), a_view(MANAGED_SEED))
    cache.replay_ended()
    assert cache.is_unconfirmed(STATE)

    cache.update(a_view(STATE, 5))
    assert not cache.is_unconfirmed(STATE)
    assert cache.is_unconfirmed(MANAGED_SEED)

    cache.replay_began()
    cache.update(a_view(STATE, 5))
    cache.replay_ended()
    assert cache.is_unconfirmed(STATE)
    assert not cache.is_unconfirmed(MANAGED_SEED)
