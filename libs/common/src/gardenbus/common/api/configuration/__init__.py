"""Component configurations: files in the form of Gardener's, one module a kind, read by one strict reader.

Settings from the environment are in `runtime`.
"""
