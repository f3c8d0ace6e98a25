"""Scheduling decisions: the seed that a shoot gets, and why not. Pure: no I/O, clock, randomness, waiting or logging.

Each package and module builds on those before it: `user_filters`, `equivalence_classes`, `seed_candidates`,
`seed_index`, `usage_index`, `snapshot`, `results`, `scores`, `filters`, `feasible_seeds`, `free_capacity`, `diagnosis`,
`assignment`, `descheduling`. `cache` keeps the snapshot of a running service.
"""
