"""Candidate determination strategies: Gardener's, and the one whose distances are a score among others."""

SAME_REGION = "SameRegion"
MINIMAL_DISTANCE = "MinimalDistance"
WEIGHTED = "Weighted"
"""All seeds that MinimalDistance can rank are one group; scores choose among them."""

STRATEGIES = (SAME_REGION, MINIMAL_DISTANCE, WEIGHTED)
