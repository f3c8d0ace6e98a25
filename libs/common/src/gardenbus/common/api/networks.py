"""Network ranges: parsing CIDRs as Go does, and overlap."""

from functools import lru_cache
from ipaddress import IPv4Network, IPv6Network, ip_network

IPNetwork = IPv4Network | IPv6Network

RESERVED_RANGES = ("240.0.0.0/8", "241.0.0.0/8", "242.0.0.0/8", "243.0.0.0/8", "244.0.0.0/8", "fd8f:6d53:b97a:1::/96")
"""Ranges reserved by Gardener (VPN, mapped ranges); no shoot may use them. Source: its `types_constants.go`."""


LONGEST_RANGE = 64
"""Characters of the longest text that may be a range: what is longer is neither parsed nor remembered."""


def _network(text: str) -> IPNetwork | None:
    return _parsed(text) if len(text) <= LONGEST_RANGE else None


@lru_cache(maxsize=16_384)
def _parsed(text: str) -> IPNetwork | None:
    address, slash, length = text.partition("/")
    if not slash or not length.isascii() or not length.isdigit() or "%" in address:
        return None
    try:
        return ip_network(text, strict=False)
    except ValueError:
        return None


def parse_cidr(text: str) -> IPNetwork:
    """The network, host bits dropped; raises ValueError for what is no CIDR (an address without length included)."""
    network = _network(text)
    if network is None:
        raise ValueError(f"{text[:80]!r} is not a network range: write it as 10.0.0.0/16 or 2001:db8::/48")
    return network


def is_cidr(text: str) -> bool:
    """True when the text is a network range."""
    return _network(text) is not None


def is_canonical(text: str) -> bool:
    """True when a range begins with its network's address: no bits of hosts are set."""
    network = _network(text)
    return network is not None and text.partition("/")[0] == str(network.network_address)


def ip_family_of(text: str) -> str | None:
    """`IPv4` or `IPv6`; None when the range is malformed."""
    network = _network(text)
    return None if network is None else f"IPv{network.version}"


def overlap(one: str, other: str) -> bool:
    """True when two ranges share an address; a malformed one overlaps with everything."""
    return max(len(one), len(other)) > LONGEST_RANGE or _overlap(one, other)


@lru_cache(maxsize=16_384)
def _overlap(one: str, other: str) -> bool:
    first, second = _network(one), _network(other)
    if first is None or second is None:
        return True
    if isinstance(first, IPv4Network):
        return isinstance(second, IPv4Network) and first.overlaps(second)
    return isinstance(second, IPv6Network) and first.overlaps(second)
