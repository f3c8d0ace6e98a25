"""Changes of an etcd: as its gateway tells them, in the spool, and in deltas."""

import base64
import json
from pathlib import Path

import pytest

from gardenbus.common.backups.files import BackupInvalid
from gardenbus.gardenlet.backend.processes.delta_files import Spool, pack, unpack
from gardenbus.gardenlet.domain.etcd_events import (
    Changes,
    Compacted,
    EtcdEvent,
    KeyValue,
    events_in,
    transaction_request,
    transactions,
)

NAME = "20261123T032710Z-delta-4-7.events.gz"


def b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def put(revision: int, key: str = "a", lease: int = 0) -> EtcdEvent:
    return EtcdEvent(KeyValue(b64(key), revision, b64(f"{key}{revision}"), lease))


def removed(revision: int, key: str = "a") -> EtcdEvent:
    return EtcdEvent(KeyValue(b64(key), revision), "DELETE")


def a_spool(file: Path) -> Spool:
    spool = Spool.begin(file, 4)
    spool.append(Changes(6, (put(5), put(6, "b"), removed(6))))
    spool.append(Changes(7, (put(7, lease=77),)))
    return spool


def test_a_line_of_a_watch_has_events_with_numbers_as_text() -> None:
    line = (
        '{"result":{"header":{"revision":"4"},"events":[{"kv":{"key":"YQ==","create_revision":"2","mod_revision":"2",'
        '"version":"1","value":"eA==","lease":"7587869"}},{"type":"DELETE","kv":{"key":"YQ==","mod_revision":"3"}}]}}'
    )
    written = EtcdEvent(KeyValue("YQ==", 2, "eA==", 7587869))
    assert events_in(line.encode()) == (written, EtcdEvent(KeyValue("YQ==", 3), "DELETE"))
    assert events_in(b'{"result":{"created":true}}') == ()


def test_a_watch_of_what_is_compacted_says_so() -> None:
    with pytest.raises(Compacted, match="before revision 3"):
        events_in(b'{"result":{"canceled":true,"compact_revision":"3"}}')


@pytest.mark.parametrize(
    "line", ['{"error":{"code":14}}', '{"result":{"canceled":true}}', "{", '{"result":{"events":1}}']
)
def test_a_watch_that_has_ended_otherwise_is_an_error(line: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        events_in(line.encode())


def test_every_revision_is_one_transaction_wherever_lines_are_cut() -> None:
    events = (put(5), put(6, "b"), removed(6), put(7))
    expected = [(5, [events[0]]), (6, [events[1], events[2]]), (7, [events[3]])]
    for cut in range(len(events)):
        changes = [Changes(0, events[:cut]), Changes(7, events[cut:])]
        assert [(revision, list(together)) for revision, together in transactions(changes)] == expected
    assert transaction_request(expected[1][1]) == {
        "success": [
            {"request_put": {"key": b64("b"), "value": b64("b6")}},
            {"request_delete_range": {"key": b64("a")}},
        ]
    }
    assert transaction_request([put(7, lease=77)])["success"][0]["request_put"]["lease"] == "77"


def test_a_spool_that_is_cut_anywhere_ends_with_the_last_whole_line(tmp_path: Path) -> None:
    file = tmp_path / "spool.jsonl"
    a_spool(file)
    whole = file.read_bytes()
    ends = [i + 1 for i, byte in enumerate(whole) if byte == ord("\n")]
    for length in range(len(whole) + 1):
        file.write_bytes(whole[:length])
        spool = Spool.load(file)
        count = sum(1 for end in ends if end <= length)
        if count == 0:
            assert spool is None or spool.through == 4
            continue
        assert spool is not None
        assert (spool.after, spool.through) == (4, (4, 6, 7)[count - 1])
        spool.append(Changes(9, (put(9),)))
        again = Spool.load(file)
        assert again is not None
        assert (again.through, again.size) == (9, file.stat().st_size)


def test_a_spool_is_none_where_there_is_none(tmp_path: Path) -> None:
    assert Spool.load(tmp_path / "spool.jsonl") is None


def test_what_a_delta_has_already_is_dropped(tmp_path: Path) -> None:
    spool = a_spool(tmp_path / "spool.jsonl").without(6)
    assert (spool.after, spool.through) == (6, 7)
    assert [json.loads(line)["revision"] for line in spool.lines()] == [7]
    spool = spool.without(7)
    assert (spool.after, spool.through, list(spool.lines())) == (7, 7, [])


def a_delta(tmp_path: Path) -> Path:
    file = tmp_path / NAME
    pack(a_spool(tmp_path / "spool.jsonl"), file, entry="apollo--u1", previous="x")
    return file


def test_a_delta_has_what_the_spool_had(tmp_path: Path) -> None:
    found = unpack(a_delta(tmp_path), NAME, entry="apollo--u1", after=4, through=7)
    assert found == [Changes(6, (put(5), put(6, "b"), removed(6))), Changes(7, (put(7, lease=77),))]
    assert (a_delta(tmp_path).stat().st_mode & 0o077) == 0


def test_a_delta_that_is_cut_anywhere_is_refused_with_what_to_do(tmp_path: Path) -> None:
    file = a_delta(tmp_path)
    whole = file.read_bytes()
    for length in range(len(whole)):
        file.write_bytes(whole[:length])
        with pytest.raises(BackupInvalid, match="put its copy there, or remove it"):
            unpack(file, NAME, entry="apollo--u1", after=4, through=7)


@pytest.mark.parametrize(
    ("entry", "after", "through"), [("zeus--u2", 4, 7), ("apollo--u1", 5, 7), ("apollo--u1", 4, 8)]
)
def test_a_delta_of_something_else_is_refused(tmp_path: Path, entry: str, after: int, through: int) -> None:
    with pytest.raises(BackupInvalid, match="remove it"):
        unpack(a_delta(tmp_path), NAME, entry=entry, after=after, through=through)
