"""The reference pages of the documentation, written from the code.

`python -m gardenbus.docs docs/reference` writes them.
"""
