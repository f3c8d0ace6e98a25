"""PURE: what a gardenlet wants, from what it was told, what it has, and the time. No I/O, clock or randomness."""
