"""Placement of resources onto member clusters: scheduling, rollout and eviction. Pure: values in, values out.

Source of the rules: KubeFleet.
"""
