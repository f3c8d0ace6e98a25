"""Pure decisions about heartbeats, expiry and migration: values in, one value out. No I/O, clock or randomness."""
