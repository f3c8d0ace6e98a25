"""Explanations of decisions: every seed's part, unschedulable reasons, suggestions, and the decision record.

Decisions themselves belong to `gardenbus.scheduling`.
"""
