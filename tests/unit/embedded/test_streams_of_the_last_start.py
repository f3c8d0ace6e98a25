"""Streams go along when a landscape begins to ask who somebody is, or ceases to."""

from pathlib import Path

from gardenbus.embedded.servers import keep_streams


def accounts(store: Path) -> dict[str, str]:
    return {folder.name: (folder / "what").read_text() for folder in (store / "jetstream").iterdir()}


def an_account(store: Path, name: str, what: str) -> None:
    (store / "jetstream" / name).mkdir(parents=True)
    (store / "jetstream" / name / "what").write_text(what)


def test_streams_follow_into_the_account_that_has_them(tmp_path: Path):
    an_account(tmp_path, "$G", "streams")
    keep_streams(tmp_path, has_accounts=True)
    assert accounts(tmp_path) == {"GARDEN": "streams"}
    keep_streams(tmp_path, has_accounts=True)
    assert accounts(tmp_path) == {"GARDEN": "streams"}
    keep_streams(tmp_path, has_accounts=False)
    assert accounts(tmp_path) == {"$G": "streams"}


def test_streams_that_are_there_are_not_written_over(tmp_path: Path):
    an_account(tmp_path, "$G", "older")
    an_account(tmp_path, "GARDEN", "newer")
    keep_streams(tmp_path, has_accounts=True)
    assert accounts(tmp_path) == {"$G": "older", "GARDEN": "newer"}


def test_a_new_store_has_nothing_to_keep(tmp_path: Path):
    keep_streams(tmp_path, has_accounts=True)
    assert list(tmp_path.iterdir()) == []
