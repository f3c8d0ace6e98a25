"""Who is alive, and what is written when somebody is not: values in, one value out. No I/O, clock or randomness."""
