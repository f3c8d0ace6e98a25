"""Words of an etcd that could not read its data, as version 3.6.4 said them."""

import pytest

from gardenbus.gardenlet.domain.etcd_damage import etcd_damage

_BEGIN = '{"level":"info","caller":"etcdmain/etcd.go:64","msg":"Running: ","args":["etcd"]}\n'


@pytest.mark.parametrize(
    ("reported", "sign"),
    [
        (
            '{"level":"panic","msg":"failed to open database","path":"etcd/member/snap/db","error":"invalid database"}',
            "invalid database",
        ),
        (
            "panic: assertion failed: Page expected to be: 2, but self identifies as 12501355485380034808",
            "panic: assertion failed: Page expected to be",
        ),
        (
            "fatal error: fault\n[signal SIGBUS: bus error code=0x2]\ncreated by go.etcd.io/bbolt.(*DB).freepages",
            "the database is cut off",
        ),
        (
            '{"level":"fatal","msg":"discovery failed","error":"proto: Record: wiretype end group for non-group"}',
            "proto: Record",
        ),
        ("panic: cannot use none as id", "panic: cannot use none as id"),
    ],
)
def test_the_sign_of_damage_is_found_in_the_last_life_only(reported: str, sign: str) -> None:
    assert etcd_damage(f"{_BEGIN}{reported}\n") == sign
    assert etcd_damage(f"{_BEGIN}{reported}\n{_BEGIN}listen tcp: bind: address already in use\n") is None


def test_an_etcd_that_ended_for_another_reason_has_no_damage() -> None:
    assert etcd_damage("") is None
    assert etcd_damage(f"{_BEGIN}panic: open etcd/member/snap/db: permission denied") is None
    assert etcd_damage(f"{_BEGIN}fatal error: out of memory") is None
