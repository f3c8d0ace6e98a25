"""Sets of small whole numbers, each one integer: bit i stands for member i.

Intersection, union and count cost almost nothing, and the highest bit is the greatest member.
"""

from collections.abc import Iterable, Iterator

Bitset = int


def bitset_of(members: Iterable[int], size: int) -> Bitset:
    """The set of some members, all below `size`."""
    octets = bytearray(size // 8 + 1)
    for member in members:
        octets[member >> 3] |= 1 << (member & 7)
    return int.from_bytes(octets, "little")


def members_of(bitset: Bitset) -> list[int]:
    """All members, lowest first; the fastest way to all of a large set."""
    return [member for member, bit in enumerate(reversed(f"{bitset:b}")) if bit == "1"]


def ascending(bitset: Bitset) -> Iterator[int]:
    """The members one by one, lowest first; for few of them."""
    while bitset:
        lowest = bitset & -bitset
        yield lowest.bit_length() - 1
        bitset ^= lowest


def descending(bitset: Bitset) -> Iterator[int]:
    """The members one by one, highest first; for few of them."""
    while bitset:
        member = bitset.bit_length() - 1
        yield member
        bitset ^= 1 << member
