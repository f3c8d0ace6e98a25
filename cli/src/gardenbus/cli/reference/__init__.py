"""The reference pages of the documentation, written from the code.

`python -m gardenbus.cli.reference docs/reference` writes them.
"""
