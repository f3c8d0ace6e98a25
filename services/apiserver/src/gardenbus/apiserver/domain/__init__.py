"""Admission as pure functions: reading requests, metadata rules, merging, validation, defaults, guards of deletions.

Values in, one value or one of the library's errors out. Other objects that a rule needs are listed by
`admission.related_queries` and passed in; nothing here reads a clock.
"""
