"""Filters: each decides which seeds pass, explains why others do not, and is one row of `table.py`.

Rankings of the seeds that pass belong in `scores`.
"""
