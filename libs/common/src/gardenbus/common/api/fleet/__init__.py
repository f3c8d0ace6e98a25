"""Kinds of placements onto member clusters, KubeFleet's: views, envelopes, overrides, Works, rows of tables. Pure."""
