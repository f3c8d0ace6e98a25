"""The rules of each kind's own fields, a module a kind: `check(manifest, old)` notes what is wrong.

Only fields that something here reads are looked at; all others pass. Rules that need other objects are admission's.
"""
