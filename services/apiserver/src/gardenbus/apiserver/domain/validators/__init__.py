"""Rules of each kind's own fields, a module a kind: `check(manifest, old)` reports every problem.

Only fields that a service reads are checked; all others pass. Rules that involve other objects belong to admission.
"""
