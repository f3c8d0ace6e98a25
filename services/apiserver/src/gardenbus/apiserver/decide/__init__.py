"""Admission as pure functions: reading requests, metadata rules, merging, validation, defaults, guards of deletions.

Values in, one value or one of the library's errors out. What needs the store (facts about other objects) is asked for
by `admission.facts_needed` and handed in; nothing here reads a clock.
"""
