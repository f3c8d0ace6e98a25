"""Gardener's controller manager: projects and their namespaces.

Seeds, moving shoots and sets of seeds have services of their own (`lifecycle`, `managedseedset`), which read the same
configuration file.
"""
