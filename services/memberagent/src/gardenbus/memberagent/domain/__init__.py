"""Pure decisions of the member agent. No I/O, clock or randomness."""
