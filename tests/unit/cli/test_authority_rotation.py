"""A certificate authority is rotated in steps of which each may be the last one that is gone."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from gardenbus.cli.local.authority_rotation import AuthorityRotation
from gardenbus.common.api.identity.principals import Principal
from gardenbus.common.errors import BadRequest, SettingsInvalid
from gardenbus.credentials import secret_files
from gardenbus.credentials.certificates import (
    Authority,
    Issued,
    certified_principal,
    new_authority,
    read_certificate,
    signing_pair,
)

NOW = datetime(2026, 3, 1, tzinfo=UTC)
CORK = Principal("gardenlet", "cork")


class Files:
    """An authority's files, and what was issued by the first one."""

    def __init__(self, directory: Path) -> None:
        self.certificates, self.key = directory / "ca.crt", directory / "ca.key"
        first = new_authority("garden", NOW)
        secret_files.write(self.certificates, first.certificate)
        secret_files.write(self.key, first.key)
        self.old = Authority(first).client(CORK, NOW)
        self.rotation = AuthorityRotation(self.certificates, self.key)

    def issued(self) -> Issued:
        """A certificate by whoever signs now."""
        return Authority(signing_pair(self.certificates.read_bytes(), self.key.read_bytes())).client(CORK, NOW)

    def lets_in(self, issued: Issued) -> bool:
        try:
            found = certified_principal(read_certificate(issued.certificate), self.rotation.read().trusted, NOW)
        except BadRequest:
            return False
        return found == CORK


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def test_both_are_trusted_until_the_rotation_ends_and_the_new_one_signs(files: Files, tmp_path: Path):
    begun = files.rotation.begin(NOW)

    assert begun.is_rotating
    new = files.issued()
    assert (files.lets_in(files.old), files.lets_in(new)) == (True, True)
    assert files.rotation.begin(NOW) == begun
    assert not files.rotation.finish().is_rotating
    assert (files.lets_in(files.old), files.lets_in(new)) == (False, True)
    assert {each.name: each.stat().st_mode & 0o777 for each in tmp_path.iterdir()} == {"ca.crt": 0o600, "ca.key": 0o600}


@pytest.mark.parametrize("cut", range(5))
def test_a_rotation_that_dies_at_any_write_lets_everybody_in_and_is_gone_on_with(
    files: Files, cut: int, monkeypatch: pytest.MonkeyPatch
):
    left, replace = cut, Path.replace

    def dying(path: Path, target: Path) -> Path:
        nonlocal left
        left -= 1
        if left < 0:
            raise KeyboardInterrupt
        return replace(path, target)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", dying)
        with pytest.raises(KeyboardInterrupt):
            files.rotation.finish() if files.rotation.begin(NOW) else None

    before = files.issued()
    assert (files.lets_in(files.old), files.lets_in(before)) == (True, True)
    assert len(files.rotation.begin(NOW).trusted) == 2
    after = files.issued()
    assert [files.lets_in(each) for each in (files.old, before, after)] == [True, True, True]
    assert len(files.rotation.finish().trusted) == 1
    assert (files.lets_in(files.old), files.lets_in(after)) == (False, True)


def test_what_one_that_died_at_the_last_step_left_behind_is_removed(files: Files):
    begun = files.rotation.begin(NOW)
    left = files.certificates.with_name("ca.next.crt")
    left.write_bytes(files.certificates.read_bytes())

    assert files.rotation.begin(NOW) == begun
    assert not left.exists()


def test_a_key_that_belongs_to_no_certificate_is_named(files: Files):
    secret_files.write(files.key, new_authority("other", NOW).key)

    with pytest.raises(SettingsInvalid, match=r"ca\.crt: the key belongs to none"):
        files.rotation.begin(NOW)
