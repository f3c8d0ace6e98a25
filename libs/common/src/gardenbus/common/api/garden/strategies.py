"""Candidate determination strategies of Gardener's scheduler."""

SAME_REGION = "SameRegion"
MINIMAL_DISTANCE = "MinimalDistance"
STRATEGIES = (SAME_REGION, MINIMAL_DISTANCE)
