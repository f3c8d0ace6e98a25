"""The fields of kinds: which there are, and of what type. Data alone.

What a request may send of them is checked in the apiserver (`domain/fields`); schemas are made of the same shapes.
"""
