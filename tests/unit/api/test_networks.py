import tracemalloc

import pytest

from gardenbus.common.api.networks import ip_family_of, is_cidr, overlap, parse_cidr


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("10.0.0.0/8", "10.1.0.0/16"),
        ("10.1.2.3/8", "10.0.0.0/16"),
        ("0.0.0.0/0", "192.168.0.0/24"),
        ("2001:db8::/32", "2001:db8:1::/48"),
        ("foo", "10.0.0.0/8"),
        ("10.0.0.0/8", "10.0.0.1"),
    ],
)
def test_ranges_overlap(one: str, other: str) -> None:
    assert overlap(one, other)
    assert overlap(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [("10.0.0.0/16", "10.1.0.0/16"), ("0.0.0.0/0", "::/0"), ("2001:db8:1::/48", "2001:db8:2::/48")],
)
def test_ranges_are_disjoint(one: str, other: str) -> None:
    assert not overlap(one, other)
    assert not overlap(other, one)


@pytest.mark.parametrize(
    "text", ["", "foo", "10.0.0.0", "10.0.0.0/255.0.0.0", "10.0.0.0/33", "fe80::1%eth0/64", "10.0.0.0/-1"]
)
def test_a_malformed_range_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match="is not a network range"):
        parse_cidr(text)
    assert ip_family_of(text) is None


def test_families_are_told_apart() -> None:
    assert (ip_family_of("10.0.0.0/8"), ip_family_of("2001:db8::/32")) == ("IPv4", "IPv6")


def test_texts_that_are_no_ranges_are_not_kept_in_memory() -> None:
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for number in range(200):
        text = f"{number}" + "x" * 20_000 + "/8"
        assert not is_cidr(text)
        assert overlap(text, "10.0.0.0/8")
    kept = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert kept < 100_000
