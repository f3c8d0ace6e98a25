"""`gardenbus redis-users`: the files that give a Redis its users."""

import stat
from pathlib import Path

from typer.testing import CliRunner, Result

from gardenbus.cli.main import app
from gardenbus.common.adapters.redis.users import USERS


def redis_users(*words: str) -> Result:
    return CliRunner().invoke(app, ["redis-users", *words])


def test_it_writes_a_password_for_each_user_and_the_file_that_redis_reads(tmp_path: Path):
    folder = tmp_path / "redis"
    result = redis_users(str(folder))
    assert result.exit_code == 0, result.output
    assert sorted(result.output.split()) == sorted(map(str, folder.iterdir()))
    lines = (folder / "users.acl").read_text().splitlines()
    assert [line.split()[1] for line in lines] == ["default", *USERS]
    assert lines[0].startswith("user default off ")
    assert all(" ~garden ~garden:* " in line for line in lines[1:-3])
    assert not any("~" in line for line in lines[-2:]), "Redis' own have no keys"
    for user in USERS:
        password = folder / f"{user}.password"
        assert stat.S_IMODE(password.stat().st_mode) == 0o600
        assert password.read_text().strip() not in (folder / "users.acl").read_text()


def test_passwords_stay_while_their_files_do(tmp_path: Path):
    redis_users(str(tmp_path))
    before = {user: (tmp_path / f"{user}.password").read_text() for user in USERS}
    (tmp_path / "relay.password").unlink()
    redis_users(str(tmp_path), "--prefix", "lab")
    after = {user: (tmp_path / f"{user}.password").read_text() for user in USERS}
    assert {user for user in USERS if before[user] != after[user]} == {"relay"}
    assert " ~lab ~lab:* " in (tmp_path / "users.acl").read_text()


def test_a_prefix_that_would_be_another_rule_is_refused(tmp_path: Path):
    for prefix in ("x +@all", "*", "a\nuser evil on nopass ~* +@all", "", "x:y"):
        result = redis_users(str(tmp_path), "--prefix", prefix)
        assert result.exit_code == 2, prefix
        assert "is no prefix" in result.output
    assert not (tmp_path / "users.acl").exists()


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path):
    (tmp_path / "taken").write_text("")
    result = redis_users(str(tmp_path / "taken" / "below"))
    assert result.exit_code == 1
    assert "cannot write" in result.output
