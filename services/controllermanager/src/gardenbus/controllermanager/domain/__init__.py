"""Pure decisions: values in, one value out. No I/O, clock or randomness."""
