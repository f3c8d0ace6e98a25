"""Gardener's controller manager: projects, what shoots and seeds refer to, and the upkeep of shoots by the clock.

Seeds, moving shoots and sets of seeds have services of their own (`lifecycle`, `managedseedset`), which read the same
configuration file.
"""
