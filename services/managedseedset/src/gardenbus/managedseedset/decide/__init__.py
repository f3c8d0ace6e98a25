"""PURE: what a look at a set means. Values in, one value out; no I/O, no clock, no randomness."""
