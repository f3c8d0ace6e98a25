"""Checks of the fields of understood kinds: which are unknown, of another type, or without an effect.

Pure. The fields themselves are in `common/api/fields`; rules about values belong to `validation`, what is read to the
typed views.
"""
