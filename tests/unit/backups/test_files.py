"""The file of a backup: read back as it was written, and recognised when it was cut or changed."""

import gzip
from pathlib import Path

import msgspec
import pytest

from gardenbus.common.backups.files import FORMAT, BackupHeader, BackupInvalid, BackupReader, BackupWriter, joined
from gardenbus.common.ports.backups import BackupRecord, StoreState, WaitingRequest

STATE = StoreState(("7", "0", "0", "0"), ({"OBJECTS": "1.2"}, {"REQUESTS": {"base64": "gaE="}}), ())
APOLLO = BackupRecord("shoot:garden-dev:apollo", 5, {"uid": "u", "spec": '{"a":"ü"}'})
GONE = BackupRecord("shoot:garden-dev:gone", 7, {"uid": "v"}, is_removed=True)


HEADER = BackupHeader(
    format=FORMAT, product="9.9.9", prefix="garden", store_format=2, opening="2.x", previous="", after=0
)


def written(path: Path, *records: BackupRecord, product_format: int = FORMAT, version: int = 7) -> Path:
    with BackupWriter(path, msgspec.structs.replace(HEADER, format=product_format)) as writer:
        writer.add(records)
        writer.finish(version, "2026-11-23T03:22:10Z", STATE)
    return path


def test_what_was_written_is_read(tmp_path: Path) -> None:
    reader = BackupReader(written(tmp_path / "b", APOLLO, GONE), "b")
    assert list(reader.records()) == [APOLLO, GONE]
    assert reader.complete.state == STATE
    assert (reader.header.product, reader.complete.version) == ("9.9.9", 7)
    assert (tmp_path / "b").stat().st_mode & 0o777 == 0o600


def test_requests_that_waited_are_among_the_records_and_covered_by_the_checksum(tmp_path: Path) -> None:
    headers = {"Nats-Request-Info": '{"user":"ann"}'}
    waiting = WaitingRequest("garden.as.ann.apply", headers, b"\x00\xff kind: Shoot", 2**60, 7, "2026-11-23T03:22:09Z")
    with BackupWriter(tmp_path / "b", HEADER) as writer:
        writer.add([APOLLO])
        writer.add_requests([waiting, waiting])
        writer.add([GONE])
        writer.finish(7, "2026-11-23T03:22:10Z", STATE)
    reader = BackupReader(tmp_path / "b", "b")
    assert list(reader.records()) == [APOLLO, GONE]
    assert list(reader.requests()) == [waiting, waiting]
    assert (reader.complete.records, reader.complete.requests) == (2, 2)
    text = gzip.decompress((tmp_path / "b").read_bytes())
    (tmp_path / "bad").write_bytes(gzip.compress(text.replace(b"as.ann.apply", b"as.bob.apply", 1)))
    with pytest.raises(BackupInvalid, match="does not have the checksum"):
        BackupReader(tmp_path / "bad", "bad").check()


def test_a_backup_says_whether_nothing_waited_or_nobody_looked(tmp_path: Path) -> None:
    assert BackupReader(written(tmp_path / "b", APOLLO), "b").check().requests is None
    with BackupWriter(tmp_path / "b", HEADER) as writer:
        writer.add_requests([])
        writer.finish(7, "2026-11-23T03:22:10Z", STATE)
    assert BackupReader(tmp_path / "b", "b").check().requests == 0


def test_an_empty_store_has_a_backup_too(tmp_path: Path) -> None:
    assert BackupReader(written(tmp_path / "b"), "b").check().records == 0


def test_every_cut_is_found(tmp_path: Path) -> None:
    whole = written(tmp_path / "b", APOLLO, GONE).read_bytes()
    for length in range(0, len(whole), 7):
        (tmp_path / "cut").write_bytes(whole[:length])
        with pytest.raises(BackupInvalid, match=r"^cut .*(cut|begin)"):
            BackupReader(tmp_path / "cut", "cut").check()


def test_every_changed_byte_is_found_or_changes_nothing(tmp_path: Path) -> None:
    whole = written(tmp_path / "b", APOLLO, GONE).read_bytes()
    found = 0
    for at in range(len(whole)):
        (tmp_path / "bad").write_bytes(whole[:at] + bytes([whole[at] ^ 0x40]) + whole[at + 1 :])
        try:
            records = list(BackupReader(tmp_path / "bad", "bad").records())
        except BackupInvalid:
            found += 1
        else:  # a bit of gzip's that means nothing
            assert records == [APOLLO, GONE], at
    assert found > len(whole) - 20


def test_a_changed_value_in_a_file_packed_anew_is_found(tmp_path: Path) -> None:
    text = gzip.decompress(written(tmp_path / "b", APOLLO, GONE).read_bytes())
    for before, after in ((b"apollo", b"athena"), (b'"version":5', b'"version":6')):
        (tmp_path / "bad").write_bytes(gzip.compress(text.replace(before, after, 1)))
        with pytest.raises(BackupInvalid, match="does not have the checksum"):
            BackupReader(tmp_path / "bad", "bad").check()


def test_a_missing_last_line_in_a_file_packed_anew_is_found(tmp_path: Path) -> None:
    lines = gzip.decompress(written(tmp_path / "b", APOLLO, GONE).read_bytes()).splitlines(keepends=True)
    (tmp_path / "bad").write_bytes(gzip.compress(b"".join(lines[:-1])))
    with pytest.raises(BackupInvalid, match="no last line with its checksum"):
        BackupReader(tmp_path / "bad", "bad").check()


def test_a_newer_format_is_refused_with_the_version_that_reads_it(tmp_path: Path) -> None:
    path = written(tmp_path / "b", APOLLO, product_format=FORMAT + 1)
    with pytest.raises(BackupInvalid, match=r"written by Gardenbus 9\.9\.9.*use that version or a later one"):
        BackupReader(path, "b")


def test_of_a_chain_the_last_record_of_each_object_counts(tmp_path: Path) -> None:
    later = BackupRecord(APOLLO.key, 9, {"uid": "u", "spec": "{}"})
    again = BackupRecord(GONE.key, 10, {"uid": "w"})
    first = BackupReader(written(tmp_path / "1", APOLLO, GONE), "1")
    second = BackupReader(written(tmp_path / "2", later, again, version=10), "2")
    assert list(joined([first, second])) == [later, again]
