"""Changes and bindings are CloudEvents too, for who reads these."""

from gardenbus.common.adapters.nats.messages import decode_headers, encode_header_lines
from gardenbus.common.api.document import StoredObject, split
from gardenbus.common.api.keys import Header, ObjectKey, Subjects
from gardenbus.common.ports.bus import Message
from gardenbus.relay.domain.announcements import announcements
from gardenbus.relay.ports.outbox import ObjectEntry, OutboxPage

ENTRY = "1763700000042-7"
SHOOT = ObjectKey("shoot", "garden-dev", "apollo")


def stored(key: ObjectKey, kind: str, **spec: str) -> StoredObject:
    document = {"apiVersion": "core.gardener.cloud/v1beta1", "kind": kind, "metadata": {"name": key.name}, "spec": spec}
    return StoredObject(key=key, parts=split(document), uid="u-1", version=7, generation=1, created_at="")


def announced(shoot: StoredObject | None, *, key: ObjectKey = SHOOT, left: tuple[str, ...] = ()) -> list[Message]:
    entries = ObjectEntry(ENTRY, key, 7, "u-1", "modified" if shoot else "deleted", True, left, 0)
    result = announcements(OutboxPage([entries], {key: shoot}), Subjects("garden"), announced_unblock_index=0)
    return [*result.changed, *result.bindings]


def attributes(message: Message) -> dict[str, str]:
    lines = message.lines.decode().split("\r\n")[:-1]
    return {name: value for name, _, value in (line.partition(": ") for line in lines)}


def test_a_change_says_what_happened_to_what_and_when() -> None:
    change, _ = announced(stored(SHOOT, "Shoot", seedName="aws-1"))
    assert attributes(change) == {
        "ce-specversion": "1.0",
        "ce-type": "io.gardenbus.shoot.modified",
        "ce-source": "/garden/changed",
        "ce-subject": "garden-dev/apollo",
        "ce-id": "u-1.7",
        "ce-time": "2025-11-21T04:40:00.042Z",
    }


def test_a_binding_is_an_event_of_its_seed_with_its_role() -> None:
    _, binding = announced(stored(SHOOT, "Shoot", seedName="aws-1"))
    assert attributes(binding)["ce-type"] == "io.gardenbus.binding.run"
    assert attributes(binding)["ce-source"] == "/garden/binding/aws-1"
    assert attributes(binding)["ce-id"] == "u-1.7"


def test_removals_are_events_too() -> None:
    change, binding = announced(None, left=("aws-1",))
    assert attributes(change)["ce-type"] == "io.gardenbus.shoot.deleted"
    assert attributes(binding)["ce-type"] == "io.gardenbus.binding.deleted"


def test_what_has_no_namespace_is_called_by_its_name() -> None:
    key = ObjectKey("seed", "", "aws-1")
    assert attributes(announced(stored(key, "Seed"), key=key)[0])["ce-subject"] == "aws-1"


def test_our_own_readers_are_spared_what_they_know_from_other_headers() -> None:
    change = announced(stored(SHOOT, "Shoot"))[0]
    block = b"NATS/1.0\r\n%b%bNats-Batch-Sequence: 1\r\n\r\n" % (encode_header_lines(change.headers), change.lines)
    assert decode_headers(block) == {**change.headers, "Nats-Batch-Sequence": "1"}
    assert decode_headers(block)[Header.VERSION] == "7"


def test_a_header_that_only_begins_alike_is_read() -> None:
    assert decode_headers(b"NATS/1.0\r\nce-specversion: 1.0\r\nWho: me\r\n\r\n") == {
        "ce-specversion": "1.0",
        "Who": "me",
    }
