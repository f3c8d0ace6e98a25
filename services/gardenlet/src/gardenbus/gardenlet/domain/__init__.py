"""Pure decisions of the gardenlet, from observed objects, records and the time. No I/O, clock or randomness."""
