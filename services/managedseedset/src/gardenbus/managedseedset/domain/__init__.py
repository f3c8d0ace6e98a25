"""Pure decisions about sets: values in, one value out; no I/O, no clock, no randomness."""
