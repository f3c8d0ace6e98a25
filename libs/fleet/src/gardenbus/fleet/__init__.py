"""Placement of resources onto member clusters: scheduling and rollout. Pure: values in, values out.

Source of the rules: KubeFleet.
"""
