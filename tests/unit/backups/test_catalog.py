"""Names of backups, and the chains that they form."""

from datetime import UTC, datetime, timedelta

import pytest

from gardenbus.common.backups.catalog import Backup, Chain, backup_of, catalog_of, chain_to, problems_of
from gardenbus.common.backups.files import BackupInvalid
from gardenbus.common.backups.restoring import chosen_chain
from gardenbus.common.errors import NotFound

START = datetime(2026, 11, 23, 3, 22, 10, tzinfo=UTC)


def a_full(minutes: int, version: int) -> Backup:
    return Backup(START + timedelta(minutes=minutes), True, 0, version)


def a_delta(minutes: int, after: int, version: int) -> Backup:
    return Backup(START + timedelta(minutes=minutes), False, after, version)


def test_a_name_says_when_a_backup_was_taken_and_which_versions_it_has() -> None:
    assert a_full(0, 10482).name == "20261123T032210Z-full-0-10482.jsonl.gz"
    assert a_delta(5, 10482, 10961).name == "20261123T032710Z-delta-10482-10961.jsonl.gz"
    assert backup_of(a_delta(5, 10482, 10961).name) == a_delta(5, 10482, 10961)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "lost+found",
        "20261123T032210Z-full-0-10482.jsonl.gz.partial",
        "20261123T032210Z-half-0-10482.jsonl.gz",
        "20261323T032210Z-full-0-10482.jsonl.gz",
        "20261123T032210Z-full-0-010482.jsonl.gz",
    ],
)
def test_what_is_no_backup_is_none(name: str) -> None:
    assert backup_of(name) is None


def test_a_delta_goes_on_from_the_backup_that_ends_where_it_begins() -> None:
    first, second = a_full(0, 100), a_full(60, 300)
    deltas = [a_delta(5, 100, 150), a_delta(10, 150, 300), a_delta(65, 300, 310)]
    catalog = catalog_of([*reversed(deltas), second, first])
    assert [chain.backups for chain in catalog.chains] == [(first, *deltas[:2]), (second, deltas[2])]
    assert catalog.loose == ()
    assert catalog.backups == (first, *deltas[:2], second, deltas[2])


def test_a_delta_whose_predecessor_is_missing_is_loose_and_said_to_be() -> None:
    catalog = catalog_of([a_full(0, 100), a_delta(5, 100, 150), a_delta(15, 160, 170), a_delta(20, 170, 180)])
    assert [chain.last.version for chain in catalog.chains] == [150]
    assert [each.after for each in catalog.loose] == [160, 170]
    assert problems_of(catalog)[0] == (
        f"{a_delta(15, 160, 170).name} goes on from version 160, and no backup here ends there: one is missing"
    )


def test_a_delta_goes_on_from_any_state_between_its_versions() -> None:
    one, other, later = a_delta(5, 100, 150), a_delta(6, 100, 160), a_delta(10, 150, 180)
    assert catalog_of([a_full(0, 100), one, other, later]).chains == (Chain(a_full(0, 100), (one, other, later)),)
    catalog = catalog_of([a_full(0, 100), a_full(5, 160), a_delta(6, 100, 170)])
    assert catalog.chains == (Chain(a_full(0, 100)), Chain(a_full(5, 160), (a_delta(6, 100, 170),)))


def test_a_delta_of_etcd_goes_on_from_the_backup_that_ends_where_it_begins_alone() -> None:
    found = [a_full(0, 100), a_delta(5, 100, 150), a_delta(6, 100, 160)]
    catalog = catalog_of(each._replace(suffix=".snapshot.gz" if each.is_full else ".deltas.gz") for each in found)
    assert [each.version for each in catalog.loose] == [160]


def test_the_latest_chain_is_restored_unless_a_backup_is_named() -> None:
    catalog = catalog_of([a_full(0, 100), a_delta(5, 100, 150), a_delta(10, 150, 160), a_full(60, 300)])
    assert chosen_chain(catalog, "", "here").last == a_full(60, 300)
    assert chosen_chain(catalog, a_delta(5, 100, 150).name, "here").backups == (a_full(0, 100), a_delta(5, 100, 150))
    assert chain_to(catalog, "other") is None


def test_a_gap_after_the_latest_chain_is_no_silent_loss() -> None:
    catalog = catalog_of([a_full(0, 100), a_delta(15, 160, 170)])
    with pytest.raises(BackupInvalid, match=r"delta-160-170.*--to 20261123T032210Z-full-0-100"):
        chosen_chain(catalog, "", "here")
    assert chosen_chain(catalog, a_full(0, 100).name, "here").last.version == 100
    with pytest.raises(BackupInvalid, match="one is missing"):
        chosen_chain(catalog, a_delta(15, 160, 170).name, "here")


def test_without_a_full_backup_nothing_can_be_restored() -> None:
    with pytest.raises(NotFound, match="no full backup in here"):
        chosen_chain(catalog_of([]), "", "here")
    with pytest.raises(NotFound, match="gardenbus backup ls"):
        chosen_chain(catalog_of([a_full(0, 100)]), "other", "here")


def test_a_name_tells_how_many_requests_waited() -> None:
    backup = a_delta(5, 100, 120)._replace(waiting=12)
    assert backup.name.endswith("-delta-100-120-w12.jsonl.gz")
    assert backup_of(backup.name) == backup
    assert backup_of(backup.name.replace("w12", "w0")) is None


def test_deltas_that_have_requests_alone_follow_each_other() -> None:
    deltas = [a_delta(minute, 100, 100)._replace(waiting=minute) for minute in (5, 10, 15)]
    assert catalog_of([*deltas, a_full(0, 100)]).chains == (Chain(a_full(0, 100), tuple(deltas)),)
