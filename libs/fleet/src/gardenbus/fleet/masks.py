"""Sets of clusters as whole numbers: bit i stands for the cluster whose name is the i-th.

And, or and count cost almost nothing, and the highest bit of a set is its last name.
"""

from collections.abc import Iterable, Iterator

Mask = int


def mask_of(places: Iterable[int], size: int) -> Mask:
    """The set of some places, all below `size`."""
    octets = bytearray(size // 8 + 1)
    for place in places:
        octets[place >> 3] |= 1 << (place & 7)
    return int.from_bytes(octets, "little")


def ascending(mask: Mask) -> Iterator[int]:
    """The places in a set, lowest first."""
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest


def descending(mask: Mask) -> Iterator[int]:
    """The places in a set, highest first."""
    while mask:
        place = mask.bit_length() - 1
        yield place
        mask ^= 1 << place
